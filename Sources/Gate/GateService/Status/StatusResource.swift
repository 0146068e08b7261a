internal import ByteCoding
internal import Cryptography
internal import Transport

/// `/status`, a page for people, and `/v1/status`, the same data for programs.
public struct StatusResource: AdminResource {
  private let status: @Sendable () async -> GateStatus

  public init(_ status: @escaping @Sendable () async -> GateStatus) { self.status = status }

  public var operations: [AdminOperation] {
    [
      AdminOperation("GET", "/", "Leads to the status page.", answers: AdminAnswers(302, types: ["text/plain"])) {
        _ throws(AdminError) in
        .admin(
          status: 302, "text/plain; charset=utf-8", "/status\n", headers: [.init(name: "Location", value: "/status")])
      },
      AdminOperation(
        "GET", "/status", "Shows the state of the gate as a page without scripts.",
        answers: AdminAnswers(200, schema: .status, types: ["text/html", "application/json"])
      ) {
        request throws(AdminError) in
        let status = await status()
        return request.wantsJSON ? .json(status) : Self.page(status)
      },
      AdminOperation(
        "GET", "/v1/status", "Returns the state of the gate.", answers: AdminAnswers(200, schema: .status)
      ) {
        _ throws(AdminError) in .json(await status())
      },
    ]
  }

  /// Forbids scripts, external resources, framing and forms. The hash allows only the one style sheet.
  private static let policy: String = {
    let hash = Base64.encode(SHA256.hash(Array(StatusStyle.text.utf8)))
    return "default-src 'none'; style-src 'sha256-\(hash)'; base-uri 'none'; form-action 'none'; "
      + "frame-ancestors 'none'"
  }()

  static func page(_ status: GateStatus) -> Response {
    .admin(
      "text/html; charset=utf-8", StatusPage(status: status).document.text,
      headers: [
        .init(name: "Content-Security-Policy", value: policy), .init(name: "X-Content-Type-Options", value: "nosniff"),
        .init(name: "Referrer-Policy", value: "no-referrer"),
      ])
  }
}
