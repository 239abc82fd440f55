// The frame of the HTTP port's pages.
#include "admin/html.h"
#include "admin/status_page.h"

namespace sluice::admin {

// Each tag is closed and each attribute quoted, so that the page is well formed as XML too, and a test can say so.
std::string BeginPage(std::string_view title) {
  std::string out;
  Append(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>", EscapeHtml(title),
         "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
         "<link rel=\"stylesheet\" href=\"/style.css\"/><link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\"/>"
         "<noscript><meta http-equiv=\"refresh\" content=\"10\"/></noscript>"
         "<script src=\"/refresh.js\" defer=\"\"></script></head>\n<body><main>\n"
         "<p id=\"old\">▲ Sluice does not answer: what is shown is old.</p>\n");
  return out;
}

void EndPage(std::string& out) {
  out +=
      "<footer><a href=\"/\">Overview</a><a href=\"/calls\">Failed calls</a><a href=\"/status.json\">status.json</a>"
      "<a href=\"/metrics\">metrics</a></footer>\n</main></body></html>\n";
}

}  // namespace sluice::admin
