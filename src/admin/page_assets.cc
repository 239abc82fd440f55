#include "admin/page_assets.h"

namespace sluice::admin {
namespace {

// Colours only add to what marks and words say. Names of classes: ok, note, bad, off are Mark's; n is a cell with a
// number; f, l, e, a, axis are parts of pictures and, of i, of
// their legends.
constexpr std::string_view kStyle = R"css(:root {
  color-scheme: light dark;
  --back: #f4f6f8; --card: #fff; --text: #1d2733; --dim: #5b6876; --line: #e1e6eb; --link: #0b5cad;
  --ok: #1a7f4b; --note: #8a5a00; --bad: #b3261e; --off: #5b6876;
  --bad-back: #fdf0ee; --note-back: #fdf6e3; --rate: #4a8fd4; --fail: #d03a2f; --late: #8d6bc4; --expected: #b6c2ce;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #12161b; --card: #1b2128; --text: #dde4eb; --dim: #98a5b3; --line: #2c353f; --link: #7db8f5;
    --ok: #5cc98f; --note: #e3b355; --bad: #ff8a80; --off: #98a5b3;
    --bad-back: #35201f; --note-back: #322a18; --rate: #4f9be6; --fail: #ff6f61; --late: #a98be0; --expected: #4a5764;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 1rem 1.25rem 2.5rem; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem .9rem; margin-bottom: .8rem; }
header .brand { font-size: 1.35rem; font-weight: 650; color: var(--text); }
header p { margin: 0; color: var(--dim); flex: 1 1 20rem; }
h1 { font-size: 1.25rem; margin: .2rem 0 .1rem; overflow-wrap: break-word; }
h2 { font-size: .98rem; font-weight: 650; margin: 1.4rem 0 .45rem; overflow-wrap: break-word; }
.dim { color: var(--dim); }
.ok { color: var(--ok); } .note { color: var(--note); } .bad { color: var(--bad); } .off { color: var(--off); }
.state { font-weight: 600; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin: 0; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .45rem .75rem; flex: 1 1 7.2rem; }
.tiles .broad { flex: 2 1 14rem; }
.tiles dt { color: var(--dim); font-size: .82rem; white-space: nowrap; }
.tiles dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tiles dd svg { display: block; width: 100%; height: auto; margin-top: .25rem; }
.alerts { list-style: none; margin: .8rem 0 0; padding: .5rem .8rem; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .34rem .8rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
thead th { border-top: 0; font-size: .8rem; font-weight: 600; color: var(--dim); white-space: nowrap; }
tbody th { font-weight: 500; color: var(--dim); white-space: nowrap; width: 14rem; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td { white-space: nowrap; }
td.w { min-width: 16rem; white-space: normal; }
td .dim { display: block; font-size: .86em; }
tr.bad td { color: var(--text); background: var(--bad-back); } tr.note td { color: var(--text); background: var(--note-back); }
.pager { margin: .5rem 0 0; color: var(--dim); }
.pager a { margin-left: .6rem; }
svg { vertical-align: middle; overflow: visible; }
path { fill: none; stroke: var(--rate); }
path.axis { stroke: var(--line); } path.f { stroke: var(--fail); } path.l { stroke: var(--late); }
i { display: inline-block; width: .7em; height: .7em; margin-left: .5em; border-radius: 2px; background: var(--rate); }
i.e { background: var(--expected); margin-left: 0; } i.f { background: var(--fail); }
path.e { stroke: var(--expected); stroke-width: 4; } path.a { stroke: var(--rate); stroke-width: 5; }
footer { margin-top: 1.6rem; color: var(--dim); }
footer a { margin-right: 1rem; }
#old { display: none; margin: 0 0 .8rem; padding: .4rem .8rem; border-radius: 8px; background: var(--bad-back); }
.old #old { display: block; }
.old main > :not(#old) { opacity: .55; }
@media print { body, .wide, .tiles div { background: none; } }
)css";

constexpr std::string_view kScript = R"js('use strict';
// Renews the page in place every two seconds while it is looked at. Without it the page is loaded again now and then.
const PERIOD = 2000;
let timer = 0;
async function renew() {
  clearTimeout(timer);
  // What is being selected, or is out of sight, stays.
  if (document.visibilityState === 'visible' && document.getSelection().isCollapsed) {
    try {
      const answer = await fetch(location.href, {cache: 'no-store', signal: AbortSignal.timeout(5000)});
      if (!answer.ok) throw new Error('status ' + answer.status);
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
      const focused = document.activeElement && document.activeElement.getAttribute('href');
      document.querySelector('main').replaceWith(next);
      for (const link of next.querySelectorAll('a'))
        if (link.getAttribute('href') === focused) { link.focus({preventScroll: true}); break; }
      document.body.classList.remove('old');
    } catch (error) {
      document.body.classList.add('old');
    }
  }
  timer = setTimeout(renew, PERIOD);
}
document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible') renew(); });
timer = setTimeout(renew, PERIOD);
)js";

constexpr std::string_view kIcon =
    R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5cad"/>)svg"
    R"svg(<path d="M6 21c4-4 6 4 10 0s6 4 10 0M6 26c4-4 6 4 10 0s6 4 10 0" fill="none" stroke="#fff" stroke-width="2.4"/>)svg"
    R"svg(<path d="M9 6v11M16 6v11M23 6v11" stroke="#fff" stroke-width="3.4"/></svg>)svg";

}  // namespace

std::string_view PageStyle() { return kStyle; }
std::string_view RefreshScript() { return kScript; }
std::string_view PageIcon() { return kIcon; }

}  // namespace sluice::admin
