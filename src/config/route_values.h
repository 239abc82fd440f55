// What several keys of a route name: methods, as "Get" or "pkg.Service/Get", and gRPC codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/parsers.h"

namespace sluice::config {

// The route's conditions let calls to "/pkg.Service/Get" in, as far as paths go.
bool TakesPath(const proxy::RouteOptions& route, std::string_view path);

// The path of a method that the route takes and a key names; empty after reporting `at` the name's place.
std::string MethodPath(Reader& reader, const Node& at, const std::string& place, const proxy::RouteOptions& route,
                       std::string_view name);

// What the descriptor set says of the method with that path. *out stays empty where it says nothing of the service.
// False after reporting that the service has no such method.
bool FindMethod(Reader& reader, const Node& at, const std::string& place, const Descriptors& descriptors,
                std::string_view path, std::optional<DescriptorSet::Method>* out);

inline constexpr uint8_t kCodeCount = 17;
// "NOT_FOUND". Below kCodeCount.
std::string_view CodeName(uint8_t code);

// A list of codes by their names, each once; OK is none of them, because `ok_is`. Sorted. False: the key is absent.
bool ParseCodes(Section& section, std::string_view key, std::string_view ok_is, std::vector<uint8_t>* out);

}  // namespace sluice::config
