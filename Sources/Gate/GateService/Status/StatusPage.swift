internal import AttestGate
package import ByteCoding

/// The page of `/status`: one document without scripts and external resources, readable without its style.
package struct StatusPage {
  let status: GateStatus

  package init(status: GateStatus) { self.status = status }

  /// The refresh interval of the browser in seconds.
  private static let refresh = 10

  var document: HTML {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta http-equiv="refresh" content="\(Self.refresh)">
    <title>\(condition.text) · sallyport</title>
    \(Self.style)
    </head>
    <body>
    <main>
    \(header)
    \(notices)
    \(figures)
    \(ActivityChart(activity: status.activity).card)
    <div class="pair">
    \(health)
    \(refusals)
    </div>
    \(sessions)
    <footer><span>Refreshes every \(Self.refresh) seconds</span><a href="/v1/status">as JSON</a>
    <a href="/metrics">metrics</a></footer>
    </main>
    </body>
    </html>

    """
  }

  // The style sheet is a constant, and the page's Content-Security-Policy contains its hash.
  private static let style = HTML(stringLiteral: "<style>\(StatusStyle.text)</style>")

  private var condition: (text: String, tone: String) { Self.condition(of: status) }

  /// The state in words, and the class of the style sheet for it.
  package static func condition(of status: GateStatus) -> (text: String, tone: String) {
    guard status.ready else { return ("not ready", "bad") }
    return status.hasWarnings ? ("ready, with warnings", "warn") : ("ready", "good")
  }

  /// The notices and figures, for a page of another style.
  package var summary: HTML { "\(notices)\(figures)" }

  /// The health and the refusals by code, for a page of another style.
  package var details: HTML { "<div class=\"pair\">\n\(health)\n\(refusals)\n</div>" }

  private var header: HTML {
    """
    <header>
    <h1>sallyport</h1>
    <span class="pill \(condition.tone)">\(condition.text)</span>
    <p>\(status.version) · up \(Figures.span(seconds: status.uptimeSeconds)) · listening on \(status.address)</p>
    </header>
    """
  }

  private var notices: HTML {
    let open: HTML =
      switch status.enforcement {
      case .off:
        #"<section class="notice">Enforcement off<p>All clients are admitted without verification.</p></section>"#
      case .monitor:
        """
        <section class="notice warn">Monitor mode\
        <p>Clients that fail verification are admitted anonymously.</p></section>
        """
      case .enforce: .nothing
      }
    return """
      \(open)\(status.upstreams?.filter { $0.condition == .failing }.map(failing) ?? [])\(refused("The configuration was not reloaded: the one before is served", status.configuration.fault))\
      \(refused("A changed certificate cannot be used: the one before is served", status.certificateFault))
      """
  }

  private func failing(_ upstream: GateStatus.UpstreamState) -> HTML {
    """
    <section class="notice warn">Upgrades fail: \(upstream.recentFailures) of the last \
    \(upstream.recentAttempts) attempts to reach the upstream of \(upstream.route)
    <p>\(upstream.upstream): \(upstream.lastFailureReason ?? "")</p></section>
    """
  }

  private func refused(_ what: String, _ fault: String?) -> HTML {
    guard let fault else { return .nothing }
    return """
      <section class="notice warn">\(what)
      \(fault.split(whereSeparator: \.isNewline).map { "<p>\(String($0))</p>" as HTML })</section>
      """
  }

  private var figures: HTML {
    let activity = status.activity
    return """
      <section class="figures">
      \(figure(status.sessions.open, "open sessions"))
      \(figure(activity.lastMinute.admitted, "admitted, last minute"))
      \(figure(activity.lastMinute.refused, "refused, last minute"))
      \(figure(activity.lastHour.registered, "new keys, last hour"))
      </section>
      """
  }

  private func figure(_ number: some BinaryInteger, _ text: String) -> HTML {
    "<div class=\"card\"><strong>\(Figures.count(number))</strong><span>\(text)</span></div>"
  }

  // MARK: Refusals

  private var refusals: HTML {
    guard !status.refusals.isEmpty else {
      return #"<section class="card"><h2>Refusals by reason</h2><p class="quiet">None since the start.</p></section>"#
    }
    let most = max(1, status.refusals.map(\.lastHour).max() ?? 1)
    return """
      <section class="card"><h2>Refusals by reason</h2>
      <table><thead><tr><th>reason</th><th class="number">last hour</th><th class="number">since start</th></tr></thead>
      <tbody>\(status.refusals.map { row($0, of: most) })</tbody></table></section>
      """
  }

  private func row(_ refusal: GateStatus.RefusalCount, of most: UInt64) -> HTML {
    """
    <tr><td><code>\(refusal.code)</code> <span class="quiet">\(refusal.status)</span>
    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" \
    height="4"/><rect class="refused" width="\(refusal.lastHour * 100 / most)" height="4"/></svg></td>
    <td class="number">\(Figures.count(refusal.lastHour))</td>\
    <td class="number">\(Figures.count(refusal.total))</td></tr>
    """
  }

  // MARK: Health

  private var health: HTML {
    """
    <section class="card"><h2>Health</h2><dl>
    \(status.checks.filter { $0.name != "store" }.map { check in
      entry(check.name, !check.ready ? "bad" : check.warning == true ? "warn" : "good", check.detail, nil)
    })
    \(entry("store", status.store.healthy ? "good" : "bad", status.store.detail, status.store.place))
    \((status.upstreams ?? []).map(upstream))
    \(status.certificates.map(certificate))
    \(entry(
      "configuration", status.configuration.current ? "good" : "warn",
      status.configuration.current ? "as in the file" : "not reloaded", "loaded \(status.configuration.loadedAt)"))
    \(status.loops.map { loops in entry("event loops", "good", "\(loops.count)", loops.reason) } ?? .nothing)
    \(status.keyExchange.map { entry("key exchange", "good", $0.joined(separator: ", "), nil) } ?? .nothing)
    \((status.risk ?? []).map { entry("risk", "good", $0.text, nil) })
    \(status.tokens.map { tokens in
      entry("tokens", "good", tokens.text, tokens.audiences.isEmpty ? nil : "valid for \(tokens.lifetimeSeconds) seconds")
    } ?? .nothing)
    \(status.receiptExchange.map { exchange in
      entry("receipts", exchange.fault == nil ? "good" : "warn", exchange.text, "exchanged with Apple")
    } ?? .nothing)
    <dt>traffic</dt><dd>\(Figures.bytes(status.traffic.bytesFromClients)) from clients<small>\
    \(Figures.bytes(status.traffic.bytesFromUpstreams)) from upstreams, \
    \(Figures.count(status.sessions.connections)) connections now</small></dd>
    </dl></section>
    """
  }

  private func entry(_ name: String, _ tone: String, _ text: String, _ detail: String?) -> HTML {
    let small: HTML = if let detail { "<small>\(detail)</small>" } else { .nothing }
    return "<dt>\(name)</dt><dd><span class=\"\(tone)\">\(text)</span>\(small)</dd>"
  }

  private func upstream(_ upstream: GateStatus.UpstreamState) -> HTML {
    let (tone, text) =
      switch upstream.condition {
      case .untried: ("quiet", "not tried yet")
      case .available: ("good", "ok")
      case .failing: ("warn", "\(upstream.recentFailures) of the last \(upstream.recentAttempts) attempts failed")
      }
    let success = upstream.lastSuccess.map { ", last success \(Figures.span(seconds: $0.secondsAgo)) ago" } ?? ""
    let failure = upstream.lastFailure.map { ", last failure \(Figures.span(seconds: $0.secondsAgo)) ago" } ?? ""
    return """
      <dt>upstream \(upstream.route)</dt>
      <dd><span class="\(tone)">\(text)</span><small>\(upstream.upstream)\(success)\(failure)</small></dd>
      """
  }

  private func certificate(_ certificate: GateStatus.CertificateState) -> HTML {
    let left = certificate.secondsLeft
    let tone = left <= 0 ? "bad" : certificate.endsSoon ? "warn" : "good"
    let text = left > 0 ? "expires in \(Figures.span(seconds: left))" : "has expired"
    let replaced: HTML =
      certificate.isFileServed
      ? .nothing : #"<span class="warn">its file contains another certificate, which is not active</span>"#
    let renewal: HTML = if let renewal = certificate.renewal { "<small>\(renewal.text)</small>" } else { .nothing }
    return """
      <dt>\(certificate.name == "client_ca" ? "client authority" : "certificate")</dt>
      <dd><span class="\(tone)">\(text)</span><small>\(certificate.subject), until \(certificate.endsAt)</small>\
      \(renewal)\(replaced)</dd>
      """
  }

  // MARK: Sessions

  private var sessions: HTML {
    let newest = status.sessions.newest
    guard !newest.isEmpty else {
      return #"<section class="card"><h2>Sessions</h2><p class="quiet">None is open.</p></section>"#
    }
    let title =
      newest.count < status.sessions.open
      ? "Sessions, the newest \(newest.count) of \(Figures.count(status.sessions.open))" : "Sessions"
    return """
      <section class="card"><h2>\(title)</h2><div class="scroll"><table class="sessions"><thead><tr>
      <th>key</th><th>route</th><th class="wide">app</th><th class="wide">by</th><th class="wide">client</th>
      <th class="number">age</th></tr></thead><tbody>\(newest.map(row))</tbody></table></div></section>
      """
  }

  private func row(_ session: SessionDescription) -> HTML {
    """
    <tr><td><code>\(session.key.map { String($0.prefix(16)) } ?? "–")</code></td><td>\(session.route)</td>
    <td class="wide">\(session.app ?? "–")</td><td class="wide">\(session.method)</td>
    <td class="wide">\(session.address)</td>
    <td class="number">\(Figures.span(seconds: session.ageSeconds))</td></tr>
    """
  }
}

/// A bar chart of the last hour with a bar for each minute: admitted requests below, refused requests on top.
struct ActivityChart {
  let activity: GateStatus.Activity

  private static let (width, height): (UInt64, UInt64) = (600, 100)
  private static let step: UInt64 = 10

  var card: HTML {
    let hour = activity.lastHour
    let admitted = "\(Figures.count(hour.admitted)) admitted"
    let refused = "\(Figures.count(hour.refused)) refused"
    return """
      <section class="card"><div class="legend"><h2>The last hour</h2><span class="quiet">\
      <i class="key"></i>\(admitted)<i class="key refused"></i>\(refused)</span></div>
      <svg class="chart" viewBox="0 0 \(Self.width) \(Self.height)" preserveAspectRatio="none" role="img" \
      aria-label="\(admitted), \(refused) in the last hour">\(bars)</svg>
      <div class="axis quiet"><span>60 min ago</span><span>at most \(Figures.count(most)) a minute</span>\
      <span>now</span></div></section>
      """
  }

  /// The highest number of decisions in one minute.
  private var most: UInt64 { activity.minutes.map { $0.admitted + $0.refused }.max() ?? 0 }

  private var bars: [HTML] {
    let scale = max(1, most)
    return activity.minutes.suffix(60).reversed().enumerated().map { age, counts in
      let x = Self.width - Self.step * (UInt64(age) + 1) + 1
      // Any number above zero is at least two units high, so that it is visible.
      let admitted = counts.admitted == 0 ? 0 : max(2, counts.admitted * (Self.height - 4) / scale)
      let refused = counts.refused == 0 ? 0 : max(2, counts.refused * (Self.height - 4) / scale)
      let top = Self.height - admitted - refused
      return """
        <rect class="refused" x="\(x)" y="\(top)" width="8" height="\(refused)"/>\
        <rect class="admitted" x="\(x)" y="\(top + refused)" width="8" height="\(admitted)"/>
        """
    }
  }
}
