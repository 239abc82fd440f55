// Of convert.h: the control plane.
#include "admin/convert.h"

namespace sluice::admin {
void ToMessage(const discovery::XdsView& view, v1::GetXdsResponse& message) {
  message.set_enabled(true);
  message.set_node_id(view.node.id);
  for (const std::string& server : view.servers) message.add_servers(server);
  if (view.server < view.servers.size()) message.set_server(view.servers[view.server]);
  message.set_stream(std::string(ToString(view.stream)));
  message.set_error(view.error);
  for (const discovery::XdsResourceView& resource : view.resources) {
    v1::XdsResource& out = *message.add_resources();
    out.set_type_url(resource.type_url);
    out.set_name(resource.name);
    out.set_state(std::string(ToString(resource.state)));
    out.set_version(resource.version);
    out.set_error(resource.error);
    out.set_refused_version(resource.refused);
    if (resource.updated_ago) out.set_updated_ago_ms(Milliseconds(*resource.updated_ago));
    if (resource.refused_ago) out.set_refused_ago_ms(Milliseconds(*resource.refused_ago));
    out.set_note(resource.note);
  }
}

}  // namespace sluice::admin
