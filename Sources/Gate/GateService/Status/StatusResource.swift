internal import ByteCoding
internal import Cryptography
internal import Transport

/// `/status`, a page for people, and `/v1/status`, the same for programs.
public struct StatusResource: AdminResource {
  private let status: @Sendable () async -> GateStatus

  public init(_ status: @escaping @Sendable () async -> GateStatus) { self.status = status }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/status", "Shows how the gate is, as a page that needs no script.",
        answers: AdminAnswers(200, schema: .status, types: ["text/html", "application/json"])
      ) {
        request throws(AdminFault) in
        let status = await status()
        return request.wantsJSON ? .json(status) : Self.page(status)
      },
      AdminOperation("GET", "/v1/status", "Tells how the gate is.", answers: AdminAnswers(200, schema: .status)) {
        _ throws(AdminFault) in .json(await status())
      },
    ]
  }

  /// Nothing may be loaded, run, framed or sent; the one style sheet is named by its hash.
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
