/// The style sheet of the device lab. Colors follow the light or dark mode of the system; every text has a contrast of
/// at least 4.5 to 1, every control is at least 44 pixels high, and spacing is in multiples of 4 pixels.
enum LabStyle {
  static let text = """
    :root { color-scheme: light dark; --ground: #f4f5f7; --card: #ffffff; --ink: #1c2127; --dim: #58616b;
      --line: #8a939d; --soft: #e3e6ea; --primary: #2563eb; --on-primary: #ffffff; --bad: #b3261e; --good: #15693a; }
    @media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1d2125; --ink: #e6e8ea; --dim: #a3acb5;
      --line: #717b86; --soft: #2c3238; --primary: #8fb4ff; --on-primary: #10203f; --bad: #ff9a8f; --good: #7fd6a0; } }
    * { box-sizing: border-box; margin: 0; }
    [hidden] { display: none !important; }
    body { background: var(--ground); color: var(--ink); padding: 16px; max-width: 1120px; margin: 0 auto;
      font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
    header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; margin-bottom: 16px; }
    h1 { font-size: 24px; } h2 { font-size: 20px; } h3 { font-size: 16px; }
    #connection, .quiet { color: var(--dim); }
    .desk { display: grid; gap: 16px; grid-template-columns: minmax(0, 1fr); }
    @media (min-width: 800px) { .desk { grid-template-columns: minmax(0, 1fr) 344px; align-items: start; } }
    main, .phone, .wide { background: var(--card); border: 1px solid var(--soft); border-radius: 12px; padding: 16px;
      min-width: 0; }
    .wide { margin-top: 16px; }
    .wide > * + *, section[role=tabpanel] > * + *, .phone > * + * { margin-top: 12px; }
    p:empty, h2:empty, h3:empty, ul:empty, .actions:empty { display: none; }
    .tabs { display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 16px; border-bottom: 1px solid var(--soft); }
    button, input, select { font: inherit; color: inherit; min-height: 44px; min-width: 44px; border-radius: 8px;
      border: 1px solid var(--line); background: var(--card); padding: 8px 16px; max-width: 100%; }
    button { cursor: pointer; }
    button:hover { background: var(--soft); }
    button:disabled { color: var(--dim); border-style: dashed; cursor: default; background: none; }
    button.primary { background: var(--primary); color: var(--on-primary); border-color: transparent; font-weight: 600; }
    button.primary:disabled { background: none; color: var(--dim); border-color: var(--line); }
    .tabs button { border-color: transparent; border-radius: 8px 8px 0 0; border-bottom: 4px solid transparent; }
    .tabs button[aria-selected=true] { border-bottom-color: var(--primary); color: var(--primary); font-weight: 600; }
    :focus-visible { outline: 4px solid var(--primary); outline-offset: 4px; }
    .actions { display: flex; flex-wrap: wrap; gap: 8px; }
    .field { display: block; }
    .row { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
    .row > input { flex: 1 1 160px; min-width: 0; }
    .tools { align-items: center; }
    label { overflow-wrap: anywhere; }
    .switch { display: flex; align-items: center; gap: 8px; min-height: 44px; cursor: pointer; }
    .switch input { width: 24px; height: 24px; min-height: 24px; min-width: 24px; accent-color: var(--primary); }
    select { width: 100%; }
    .switches { display: grid; gap: 4px; }
    .screen { border: 1px solid var(--line); border-radius: 24px; padding: 16px; min-height: 160px; }
    .screen > * + * { margin-top: 8px; }
    .prompt { border: 2px solid var(--primary); border-radius: 12px; padding: 12px; margin-top: 8px; }
    .prompt > * + * { margin-top: 8px; }
    .error { color: var(--bad); } .good { color: var(--good); }
    .alert { color: var(--bad); border: 2px solid var(--bad); border-radius: 8px; padding: 8px 12px; font-weight: 600; }
    #challenge { border-top: 1px solid var(--soft); padding-top: 12px; }
    #challenge > * + *, #challenge-panel > * + *, #security-offer > * + *, #security-codes > * + * { margin-top: 12px; }
    .ring { width: 44px; height: 44px; transform: rotate(-90deg); fill: none; stroke-width: 4; stroke: var(--soft); }
    #challenge-ring { stroke: var(--primary); }
    #challenge-seconds { font-variant-numeric: tabular-nums; }
    svg.code { width: 240px; height: 240px; max-width: 100%; border-radius: 8px; shape-rendering: crispEdges; }
    svg.code .ground { fill: #ffffff; } svg.code .dark { fill: #000000; }
    code, .codes { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
    .codes { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: 8px; }
    .rows li { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between;
      border-top: 1px solid var(--soft); padding: 8px 0; overflow-wrap: anywhere; }
    progress { width: 100%; accent-color: var(--primary); }
    .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 8px; }
    .cards li { border: 1px solid var(--soft); border-radius: 8px; padding: 8px 12px; }
    .cards span { display: block; color: var(--dim); } .cards strong { overflow-wrap: anywhere; font-weight: 600; }
    ol, ul { list-style: none; padding: 0; }
    #scenarios { display: grid; gap: 4px; }
    #scenarios button { text-align: left; width: 100%; display: flex; flex-wrap: wrap; gap: 4px 12px; }
    #scenarios .verdict { margin-left: auto; font-weight: 600; }
    #phone-messages li { border: 1px solid var(--soft); border-radius: 8px; padding: 8px 12px; margin-top: 4px; }
    .sequence, .log { overflow: auto; max-height: 480px; }
    .sequence li { padding: 4px 0; overflow-wrap: anywhere; }
    .sequence .lanes { display: flex; justify-content: space-between; color: var(--dim); font-weight: 600; }
    .sequence .arrow { display: block; height: 8px; margin-right: 8px; border-bottom: 2px solid var(--good);
      position: relative; color: var(--good); }
    .sequence .arrow.gate { width: 50%; }
    .sequence .arrow.failed { border-color: var(--bad); color: var(--bad); }
    .sequence .arrow::after { content: ""; position: absolute; right: -8px; bottom: -7px;
      border: 6px solid transparent; border-left: 8px solid currentColor; border-right: 0; }
    .log li { border-top: 1px solid var(--soft); padding: 4px 0; overflow-wrap: anywhere; }
    .log summary { cursor: pointer; min-height: 44px; padding: 8px 0; }
    .log time { color: var(--dim); font-variant-numeric: tabular-nums; }
    .log .failed { color: var(--bad); }
    @media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; } }
    """
}
