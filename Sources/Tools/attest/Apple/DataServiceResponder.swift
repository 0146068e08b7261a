internal import Commands
internal import Locking
internal import SimulatedDevice
internal import Transport

/// Serves a simulated data service by HTTP, and prints each request.
final class DataServiceResponder: RequestResponder {
  private static let path = "/v1/attestationData"

  private let service: SimulatedDataService
  /// The answers that are left; the last one stays.
  private let script: LockedValue<[ScriptedAnswer]>
  private let isJSON: Bool

  init(service: SimulatedDataService, answers: [ScriptedAnswer], isJSON: Bool) {
    self.service = service
    script = LockedValue(answers)
    self.isJSON = isJSON
  }

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard request.path == Self.path, request.method == "POST" else {
      return .respond(Self.text(404, "POST \(Self.path) is expected"))
    }
    let answer = script.withLock { $0.count > 1 ? $0.removeFirst() : $0.first } ?? .reply(.genuine)
    guard case .reply(let kind) = answer else {
      try? await Task.sleep(for: .seconds(60))
      return .respond(Self.text(503, "late, as scripted"))
    }
    let authorization: String? =
      if case .once(let text) = request.headers.only("Authorization") { text } else { nil }
    let reply = service.reply(to: request.body, authorization: authorization, as: kind)
    if isJSON {
      JSONOutput.print(Line(status: reply.status, note: reply.note))
    } else {
      StandardOutput.write("\(reply.status)  \(reply.note)\n")
    }
    var headers = HeaderFields([.init(name: "Content-Type", value: "application/base64")])
    if reply.status == 302 { headers.append("Location", "/v2/attestationData") }
    return .respond(Response(status: reply.status, headers: headers, body: reply.body))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    EchoResponder().response(to: fault, of: headers, id: id, from: peer)
  }

  private struct Line: Encodable {
    let status: Int
    let note: String
  }

  private static func text(_ status: Int, _ text: String) -> Response {
    Response(
      status: status, headers: HeaderFields([.init(name: "Content-Type", value: "text/plain; charset=utf-8")]),
      body: Array((text + "\n").utf8))
  }
}
