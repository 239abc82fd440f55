// Routes as a table, and what would become of a call in plain words: the admin API's answers for a person.
#pragma once

#include <string>

#include "sluice/admin/v1/admin.pb.h"

namespace sluice::ctl {

std::string PrintRoutes(const admin::v1::ListRoutesResponse& routes);
std::string PrintExplanation(const admin::v1::GetExplanationResponse& call);

}  // namespace sluice::ctl
