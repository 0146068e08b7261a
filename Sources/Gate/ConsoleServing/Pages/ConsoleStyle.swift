/// The style sheet of a console. Colors follow the light or dark mode of the system.
enum ConsoleStyle {
  static let text = """
    :root { color-scheme: light dark; --ground: #f6f6f3; --card: #ffffff; --ink: #20252a; --dim: #5a626a;
      --line: #dcdcd5; --good: #28705a; --bad: #a53c25; --warn: #7d5300; --soft: #e3efe9; --softbad: #f8e6e0;
      --softwarn: #f6ecd6; --link: #1f5f8b; --s0: #a53c25; --s1: #b3741a; --s2: #6b5ca5; --s3: #2f7f8f; --s4: #8a6a4f;
      --s5: #7a8086; }
    @media (prefers-color-scheme: dark) { :root { --ground: #131618; --card: #1b1f22; --ink: #e4e6e3; --dim: #a3aab1;
      --line: #2f353a; --good: #7fc4aa; --bad: #ec8f76; --warn: #dcb066; --soft: #1f322b; --softbad: #3a231d;
      --softwarn: #352b18; --link: #8cc2e6; --s0: #ec8f76; --s1: #dcb066; --s2: #a99be0; --s3: #79c3d1; --s4: #c4a68b;
      --s5: #969da4; } }
    * { box-sizing: border-box; margin: 0; }
    body { background: var(--ground); color: var(--ink); padding: 0 1.25rem 3rem;
      font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
    body.alone { padding-top: 20vh; } body.alone main { max-width: 30rem; }
    header, main { max-width: 72rem; margin: 0 auto; }
    header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.5rem; padding: .9rem 0;
      border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; }
    .brand { font-weight: 600; }
    header nav { flex: 1; } nav ul { display: flex; flex-wrap: wrap; list-style: none; padding: 0; gap: .1rem .25rem; }
    header nav a { display: block; padding: .3rem .6rem; border-radius: .4rem; text-decoration: none; color: var(--ink); }
    nav a[aria-current] { background: var(--soft); color: var(--good); font-weight: 600; }
    main { display: grid; gap: 1rem; } main > *, #content > *, .pair > * { min-width: 0; }
    main:focus { outline: none; }
    #content { display: grid; gap: 1rem; }
    h1 { font-size: 1.4rem; font-weight: 600; letter-spacing: -.01em; overflow-wrap: anywhere; }
    h2 { font-size: 1rem; font-weight: 600; margin-bottom: .6rem; }
    a { color: var(--link); }
    .skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: .5rem; background: var(--card);
      padding: .5rem 1rem; z-index: 1; }
    :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
    .title { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: .25rem 1.5rem; }
    .files { color: var(--dim); font-size: .85rem; } .files a { margin-left: .4rem; }
    .quiet, .empty { color: var(--dim); } .quiet { font-size: .85rem; }
    .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
    .pill { border-radius: 1rem; padding: .1rem .65rem; font-size: .85rem; font-weight: 600; background: var(--soft);
      color: var(--good); white-space: nowrap; }
    .pill.warn { background: var(--softwarn); color: var(--warn); } .pill.bad { background: var(--softbad);
      color: var(--bad); }
    .card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.25rem; }
    .notice { border-radius: .6rem; padding: .8rem 1.25rem; background: var(--softbad); overflow-wrap: anywhere; }
    .notice.good { background: var(--soft); } .notice.warn { background: var(--softwarn); }
    .figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: 1rem; }
    .figures strong { display: block; font-size: 1.8rem; line-height: 1.25; font-weight: 500;
      font-variant-numeric: tabular-nums; }
    .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
    dl { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: .45rem 1.25rem; }
    dt { color: var(--dim); overflow-wrap: anywhere; } dd { min-width: 0; overflow-wrap: anywhere; }
    code { font: .87em ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    .command { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; color: var(--dim); }
    .command code { overflow-wrap: anywhere; }
    .tools { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; justify-content: space-between; }
    .live { color: var(--dim); font-size: .85rem; }
    form.filters { display: flex; flex-wrap: wrap; gap: .6rem .8rem; align-items: end; }
    form.filters label { display: grid; gap: .15rem; font-size: .85rem; color: var(--dim); min-width: 0; }
    input[type=text], input[type=search], select { font: inherit; color: var(--ink); background: var(--card);
      border: 1px solid var(--dim); border-radius: .4rem; padding: .3rem .5rem; max-width: 100%; min-height: 2.2rem; }
    button, .button { font: inherit; cursor: pointer; border-radius: .4rem; padding: .3rem .8rem; min-height: 2.2rem;
      border: 1px solid var(--dim); background: var(--card); color: var(--ink); }
    .button { display: inline-block; } summary { cursor: pointer; }
    button.danger, .button.danger { border-color: var(--bad); color: var(--bad); }
    .acts { display: flex; flex-wrap: wrap; gap: .6rem; align-items: start; }
    .question { margin-top: .5rem; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: .5rem;
      background: var(--card); display: grid; gap: .6rem; max-width: 34rem; }
    .scroll { overflow-x: auto; padding: .4rem 1.25rem; }
    table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
    th { text-align: left; font-weight: 400; color: var(--dim); font-size: .85rem; }
    th, td { padding: .45rem 1rem .45rem 0; vertical-align: top; } td { overflow-wrap: anywhere; }
    td:first-child { overflow-wrap: normal; } td .name { overflow-wrap: anywhere; }
    th a { color: inherit; } th[aria-sort] { color: var(--ink); font-weight: 600; }
    th[aria-sort=ascending] a::after { content: " \\2191"; } th[aria-sort=descending] a::after { content: " \\2193"; }
    tbody tr > td { border-top: 1px solid var(--line); } .number { text-align: right; } td[role].number { text-align: left; }
    #content > h2 { margin: .4rem 0 -.5rem; }
    td small, dd small { display: block; color: var(--dim); font-size: .85rem; }
    td time, .nowrap { white-space: nowrap; }
    .track { fill: var(--line); } .refused { fill: var(--bad); }
    .bar { display: block; width: 100%; height: .3rem; margin-top: .15rem; }
    .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .pages { display: flex; gap: 1rem; }
    .chart svg { display: block; width: 100%; height: 7rem; margin-top: .6rem; }
    .axis { display: flex; justify-content: space-between; border-top: 1px solid var(--line); padding-top: .3rem; }
    .legend { display: flex; flex-wrap: wrap; gap: .1rem 1rem; list-style: none; padding: 0; font-size: .85rem;
      color: var(--dim); }
    .legend i { display: inline-block; width: .6rem; height: .6rem; border-radius: .15rem; margin-right: .35rem; }
    .fill-good { fill: var(--good); } i.fill-good { background: var(--good); }
    .fill-s0 { fill: var(--s0); } i.fill-s0 { background: var(--s0); }
    .fill-s1 { fill: var(--s1); } i.fill-s1 { background: var(--s1); }
    .fill-s2 { fill: var(--s2); } i.fill-s2 { background: var(--s2); }
    .fill-s3 { fill: var(--s3); } i.fill-s3 { background: var(--s3); }
    .fill-s4 { fill: var(--s4); } i.fill-s4 { background: var(--s4); }
    .fill-s5 { fill: var(--s5); } i.fill-s5 { background: var(--s5); }
    @media (max-width: 45rem) {
      body { padding: 0 1rem 2rem; } .figures { grid-template-columns: 1fr 1fr; } .pair { grid-template-columns: 1fr; }
      header nav { flex-basis: 100%; order: 3; }
      .scroll { padding: 0 1rem; } table[role], tbody[role], tr[role], td[role] { display: block; width: auto; }
      thead[role] { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
      .sorted thead[role] { position: static; width: auto; height: auto; overflow: visible; clip-path: none; }
      .sorted thead tr { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
      .sorted th { display: none; padding: 0; } .sorted th:has(a) { display: block; }
      tr[role] { padding: .6rem 0; } tr[role] + tr { border-top: 1px solid var(--line); }
      tbody tr > td[role] { border: 0; padding: .1rem 0; text-align: left; display: grid; grid-template-columns: 6.5rem 1fr;
        gap: .5rem; }
      td[role]::before { content: attr(data-label); color: var(--dim); font-size: .85rem; } td[role] > * { grid-column: 2; }
      tbody tr > td.blank { display: none; }
      td[data-label=""]::before { content: none; }
      form.filters label, form.filters input, form.filters select { width: 100%; }
    }
    @media (prefers-reduced-motion: no-preference) { button, .button, header nav a { transition: background .15s; } }
    button:hover, .button:hover, header nav a:hover { background: var(--soft); }
    """
}
