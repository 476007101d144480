// SPDX-License-Identifier: Apache-2.0
#include "report/html_style.h"

namespace headroom::report::html {

const std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#57606a;--line:#d0d7de;--card:#f6f8fa;--link:#0550ae;--bad:#a40e26;
--useful:#009e73;--discarded:#cc79a7;--under_way:#66c2a5;--foreign:#56b4e9;--startup:#f2df3a;--input:#d55e00;--host:#d98e04;
--transfer:#0072b2;--sync:#5d4fa3;--peers:#8c6d1f;--checkpoint:#7a3b10;--validation_host:#9c2f6f;--teardown:#b8b06a;--hung:#7f0000;
--stopped:#b22222;--unexplained:#7a7f87;--task_waiting:#3b3f45;--not_used:#a9b0b8;--no_task:#cfd5db;--unobserved:#eef1f4}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8eb;--dim:#9aa4af;--line:#383e46;--card:#1d2126;--link:#79b8ff;--bad:#ff8b8b;
--useful:#1fb58a;--discarded:#d68fb8;--under_way:#8fd6bf;--foreign:#6fc3f2;--startup:#f0e442;--input:#ee7a1c;--host:#f0b52e;
--transfer:#4aa3dd;--sync:#9a8be0;--peers:#b8963f;--checkpoint:#b0703f;--validation_host:#d0619f;--teardown:#d2ca86;--hung:#c83232;
--stopped:#e05a5a;--unexplained:#9aa0a8;--task_waiting:#e8eaed;--not_used:#6b727a;--no_task:#454b52;--unobserved:#2a2f35}}
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.6rem;line-height:1.3;margin:.2em 0 .6em}
h2{font-size:1.25rem;margin:2.2em 0 .6em;border-bottom:1px solid var(--line);padding-bottom:.25em}
h3{font-size:1.05rem;margin:1.4em 0 .4em}
a{color:var(--link)}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--bg)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.dim,caption{color:var(--dim);font-size:.875rem}
.problem strong{color:var(--bad)}
article h3{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem}
.cost{font-weight:400;color:var(--dim)}
nav ul,.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:.5em 0;padding:0;font-size:.875rem}
.legend i{display:inline-block;width:.85em;height:.85em;margin-right:.4em;border:1px solid var(--line);vertical-align:-.05em}
article{border:1px solid var(--line);border-radius:6px;padding:0 1rem .4rem;margin:1rem 0;background:var(--card)}
dl{display:grid;grid-template-columns:10rem 1fr;gap:.25rem 1rem;margin:.6em 0}
dt{grid-column:1;color:var(--dim)}
dd{grid-column:2;margin:0;min-width:0}
.row{display:grid;grid-template-columns:14rem 1fr;gap:.75rem;align-items:center;margin:.3em 0;font-size:.875rem}
.row>span{min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
#options .row>span,#what-if .row>span,#curves .row>span,#best .row>span,#result .row>span,#parts .row>span,#phases .row>span{white-space:normal}
.axis{display:flex;justify-content:space-between;color:var(--dim);border-top:1px solid var(--line)}
svg{display:block;width:100%;shape-rendering:crispEdges}
.bar{height:1.7rem}.strip{height:2.6rem}.series{height:2rem;border-bottom:1px solid var(--line)}.step,.run{height:.9rem}.pair{height:1.3rem}.marks{height:.6rem}
.lanes1{height:.9rem}.lanes4{height:2.8rem}.lanes16{height:7rem}.lanes64{height:14rem}
.strip,.bar,.marks{background:var(--card)}
.bar rect{stroke:var(--bg);stroke-width:1px;vector-effect:non-scaling-stroke}
.series path{fill:var(--transfer);stroke:var(--transfer);stroke-width:1px;vector-effect:non-scaling-stroke}
.marks path{fill:var(--fg)}
.ground{fill:var(--card)}.gain{fill:var(--useful);background:var(--useful)}.one{fill:var(--fg)}.pruned{fill:var(--discarded);background:var(--discarded)}
.curves{height:15rem;background:var(--card);shape-rendering:auto}.best{height:7rem}
.curves path{fill:none;stroke-width:1.5px;stroke-opacity:.8;vector-effect:non-scaling-stroke}
.curves .good{stroke:var(--useful)}.curves .pruned{stroke:var(--discarded)}.curves .bad{stroke:var(--input)}.curves .running{stroke:var(--foreign)}.curves .cut{stroke:var(--fg);stroke-width:1px}
.good{fill:var(--useful);background:var(--useful)}.bad{fill:var(--input);background:var(--input)}.running{fill:var(--foreign);background:var(--foreign)}
.scroll{overflow-x:auto;max-width:100%;margin:.6em 0}
table{border-collapse:collapse;font-size:.875rem}
caption{text-align:left;padding:.3em 0}
th,td{text-align:left;vertical-align:top;padding:.25em .7em;border-bottom:1px solid var(--line)}
tbody th{font-weight:400}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.waterfall{width:100%;margin-top:1em}
.waterfall td:nth-child(2){width:60%}
details{margin:.5em 0}
summary{cursor:pointer;font-size:.875rem;padding:.2em 0}
pre{overflow-x:auto;background:var(--card);border:1px solid var(--line);padding:.6em .8em;font-size:.875rem}
code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}
pre code{overflow-wrap:normal}
.flame{width:1200px;max-width:none;font:11px ui-monospace,monospace}
.flame text{fill:#111}
.a-useful{fill:var(--useful);background:var(--useful)}
.a-discarded{fill:var(--discarded);background:var(--discarded)}
.a-under_way{fill:var(--under_way);background:var(--under_way)}
.a-foreign{fill:var(--foreign);background:var(--foreign)}
.a-startup{fill:var(--startup);background:var(--startup)}
.a-input{fill:var(--input);background:var(--input)}
.a-host{fill:var(--host);background:var(--host)}
.a-transfer{fill:var(--transfer);background:var(--transfer)}
.a-sync{fill:var(--sync);background:var(--sync)}
.a-peers{fill:var(--peers);background:var(--peers)}
.a-checkpoint{fill:var(--checkpoint);background:var(--checkpoint)}
.a-validation_host{fill:var(--validation_host);background:var(--validation_host)}
.a-teardown{fill:var(--teardown);background:var(--teardown)}
.a-hung{fill:var(--hung);background:var(--hung)}
.a-stopped{fill:var(--stopped);background:var(--stopped)}
.a-unexplained{fill:var(--unexplained);background:var(--unexplained)}
.a-task_waiting{fill:var(--task_waiting);background:var(--task_waiting)}
.a-not_used{fill:var(--not_used);background:var(--not_used)}
.a-no_task{fill:var(--no_task);background:var(--no_task)}
.a-unobserved{fill:var(--unobserved);background:var(--unobserved)}
@media(max-width:40rem){
.row{grid-template-columns:1fr;gap:.15rem}
.row>span{white-space:normal}
dl{grid-template-columns:1fr;gap:0}
dd{grid-column:1;margin-bottom:.4em}
.axis span:nth-child(even){display:none}
.waterfall td:nth-child(2){width:35%}
th,td{padding:.25em .4em}
}
@media print{
body{max-width:none;font-size:11pt}
nav,.skip{display:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
article,svg,tr{break-inside:avoid}
.scroll{overflow:visible}
.row>span{white-space:normal}
details::details-content{content-visibility:visible}
}
)css";

}  // namespace headroom::report::html
