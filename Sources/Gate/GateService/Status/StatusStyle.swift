/// The style sheet of the status page. Colors follow the light or dark mode of the system.
enum StatusStyle {
  static let text = """
    :root { color-scheme: light dark; --ground: #f6f6f3; --card: #ffffff; --ink: #20252a; --dim: #656d75;
      --line: #e5e5df; --good: #28705a; --bad: #a53c25; --warn: #855800; --soft: #e3efe9; --softbad: #f8e6e0;
      --softwarn: #f6ecd6; }
    @media (prefers-color-scheme: dark) { :root { --ground: #131618; --card: #1b1f22; --ink: #e4e6e3; --dim: #969da4;
      --line: #2b3035; --good: #7fc4aa; --bad: #ec8f76; --warn: #dcb066; --soft: #1f322b; --softbad: #3a231d;
      --softwarn: #352b18; } }
    * { box-sizing: border-box; margin: 0; }
    body { background: var(--ground); color: var(--ink); padding: 2.5rem 1.25rem 3rem;
      font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
    main { max-width: 62rem; margin: 0 auto; display: grid; gap: 1rem; }
    header { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; padding-bottom: .5rem; }
    h1 { font-size: 1.5rem; font-weight: 600; letter-spacing: -.01em; }
    header p { color: var(--dim); flex-basis: 100%; }
    h2 { font-size: .8rem; font-weight: 600; color: var(--dim); margin-bottom: .75rem; }
    .pill { border-radius: 1rem; padding: .15rem .75rem; font-size: .85rem; font-weight: 600; background: var(--soft);
      color: var(--good); }
    .pill.warn { background: var(--softwarn); color: var(--warn); }
    .pill.bad { background: var(--softbad); color: var(--bad); }
    .card, .notice { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
      padding: 1.1rem 1.25rem; min-width: 0; }
    .notice { background: var(--softbad); border-color: transparent; color: var(--bad); font-weight: 600; }
    .notice.warn { background: var(--softwarn); color: var(--warn); }
    .notice p { font-weight: 400; overflow-wrap: anywhere; }
    .figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: 1rem; }
    .figures .card { padding: .9rem 1.25rem; }
    .figures strong { display: block; font-size: 2rem; line-height: 1.25; font-weight: 500; letter-spacing: -.02em;
      font-variant-numeric: tabular-nums; }
    .figures span, .quiet { color: var(--dim); font-size: .85rem; }
    .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
    .legend { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .25rem 1.5rem; }
    .legend h2 { margin: 0; }
    .key { display: inline-block; width: .6rem; height: .6rem; border-radius: .15rem; margin: 0 .35rem 0 .75rem;
      background: var(--good); }
    .key:first-child { margin-left: 0; }
    .key.refused { background: var(--bad); }
    svg { display: block; width: 100%; }
    .chart { height: 7.5rem; margin-top: .75rem; }
    .axis { display: flex; justify-content: space-between; border-top: 1px solid var(--line); padding-top: .3rem; }
    .admitted { fill: var(--good); }
    .refused { fill: var(--bad); }
    .track { fill: var(--line); }
    .bar { height: .3rem; margin-top: .15rem; }
    dl { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: .5rem 1.25rem; }
    dt { color: var(--dim); overflow-wrap: anywhere; }
    dd { min-width: 0; overflow-wrap: anywhere; }
    dd small { display: block; color: var(--dim); font-size: .85rem; }
    .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
    .scroll { overflow-x: auto; }
    table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
    th { text-align: left; font-weight: 400; color: var(--dim); font-size: .85rem; }
    th, td { padding: .4rem 1rem .4rem 0; vertical-align: top; }
    tr + tr > td, tbody tr:first-child > td { border-top: 1px solid var(--line); }
    th:last-child, td:last-child { padding-right: 0; }
    .number { text-align: right; white-space: nowrap; }
    code { font: .87em ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    .sessions td { white-space: nowrap; }
    footer { color: var(--dim); font-size: .85rem; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
    a { color: inherit; }
    @media (max-width: 45rem) { body { padding: 1.5rem 1rem 2rem; } .figures { grid-template-columns: 1fr 1fr; }
      .pair { grid-template-columns: 1fr; } .wide { display: none; } .figures strong { font-size: 1.65rem; }
      th, td { padding-right: .6rem; } td code { overflow-wrap: anywhere; } dl { column-gap: .9rem; } }
    """
}
