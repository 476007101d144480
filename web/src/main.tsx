// SPDX-License-Identifier: Apache-2.0
// The dashboard of `headroom serve`: what it says is asked of the server and drawn here; nothing can be changed from it.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Overview } from "./api";
import { BatchPage } from "./batch";
import { Home, Lists } from "./lists";
import { type Answer, start, useAnswer, useConnected } from "./live";
import { Problem } from "./parts";
import { RecordingPage } from "./recording";
import { type Route, useRoute } from "./route";
import { StudyPage } from "./study";
import licences from "../licences.txt";

function Page({ route, overview }: { route: Route; overview: Overview }) {
  switch (route.kind) {
    case "recording": {
      const known = overview.recordings.find((one) => one.key === route.key);
      return (
        <RecordingPage
          key={route.key}
          id={route.key}
          first={route.window}
          label={known?.label || known?.name || ""}
          others={overview.recordings.filter((one) => one.key !== route.key && one.problem === null)}
        />
      );
    }
    case "batch":
      return <BatchPage key={route.key} id={route.key} overview={overview} task={route.task} />;
    case "study": {
      const known = overview.studies.find((one) => one.key === route.key);
      return <StudyPage key={route.key} id={route.key} name={known?.name ?? ""} path={known?.path ?? ""} />;
    }
    case "home":
      return <Home overview={overview} />;
  }
}

/** Where the list stands above the page (a phone), a chosen page hides it. */
function Body({ answer, route }: { answer: Answer<Overview>; route: Route }) {
  const { data, error } = answer;
  if (!data)
    return (
      <main id="main" tabIndex={-1}>
        <h1>Headroom</h1>
        {error ? <Problem error={error} /> : <p>Asking headroom serve …</p>}
      </main>
    );
  return (
    <div class={route.kind === "home" ? "body at-home" : "body"}>
      <nav aria-label="Recordings, batches, studies">
        <Lists overview={data} route={route} />
      </nav>
      <main id="main" tabIndex={-1}>
        {error && <Problem error={error} />}
        <Page route={route} overview={data} />
      </main>
    </div>
  );
}

function App() {
  const route = useRoute(),
    connected = useConnected();
  const answer = useAnswer<Overview>("/api/overview", (change) => change.what === "overview");
  const lost = connected === false,
    version = answer.data?.version;
  const first = useRef(version);
  useEffect(() => {
    // another server, another page
    if (version && first.current && version !== first.current) location.reload();
    first.current = version;
  }, [version]);
  useEffect(() => {
    document.title = answer.data ? `Headroom · ${answer.data.host}` : "Headroom";
  }, [answer.data?.host]);
  const shown = useRef(route.kind + route.key);
  useEffect(() => {
    // another page begins at its top, for screen readers, too
    if (shown.current === route.kind + route.key) return;
    shown.current = route.kind + route.key;
    scrollTo(0, 0);
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [route.kind, route.key]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the page
      </button>
      <header>
        <a class="brand" href="#/">
          Headroom
        </a>
        {answer.data && <span class="dim">{answer.data.host}</span>}
        {route.kind !== "home" && (
          <a class="back" href="#/">
            All recordings
          </a>
        )}
        <span role="status" class={lost ? "lost" : "dim"}>
          {connected === null ? "" : lost ? "The connection to headroom serve is lost; trying again …" : "connected"}
        </span>
      </header>
      <Body answer={answer} route={route} />
      <footer>
        <p class="dim">headroom {answer.data?.version ?? ""}. This page only reads.</p>
        <details>
          <summary>Licences of what this page is made of</summary>
          <pre tabIndex={0}>{licences}</pre>
        </details>
      </footer>
    </>
  );
}

start();
const root = document.getElementById("app");
if (root) render(<App />, root);
