public import AttestGate
internal import ByteCoding
public import Transport

/// Why the admin server does not do what it was asked for.
public enum AdminFault: Error, Sendable, Hashable {
  /// The token is absent or another one.
  case unauthorized
  /// A web page asks for a change.
  case foreignOrigin
  /// The request is for a host that is not this machine.
  case foreignHost
  case notFound
  case methodNotAllowed(allowed: [String])
  case unknownParameter(known: [String])
  case malformedParameter(String, rule: String)
  case bodyNotExpected
  /// What stands for a key is neither a hash nor the beginning of one.
  case malformedKey
  case unknownKey
  /// At least two keys begin so.
  case ambiguousKey
  case unknownSession
  case storeUnavailable(StoreError)
  /// The old configuration stays.
  case configurationRefused(reason: String)
  /// No other process has taken over.
  case upgradeRefused(reason: String)
  case malformedRequest(RequestFault)
}

/// The one public face of a fault: `{"error", "code", "hint"}`.
struct AdminRefusal {
  let status: Int
  let code: String
  let text: String
  var hint: String?
  var headers: [HeaderFields.Field] = []

  private init(
    _ status: Int, _ code: String, _ text: String, hint: String? = nil, _ headers: HeaderFields.Field...
  ) {
    self.status = status
    self.code = code
    self.text = text
    self.hint = hint
    self.headers = headers
  }

  init(_ fault: AdminFault) {
    switch fault {
    case .unauthorized:
      self.init(
        401, "unauthorized", "The admin server asks for its token",
        hint: "send Authorization: Bearer and the first line of admin.token_file, as it was when the gate started",
        .init(name: "WWW-Authenticate", value: "Bearer"))
    case .foreignOrigin: self.init(403, "foreign_origin", "Web pages may not change anything here")
    case .foreignHost:
      self.init(
        421, "foreign_host", "This server is asked for as localhost or 127.0.0.1",
        hint: "name it so in the URL, as in http://localhost/readyz")
    case .notFound: self.init(404, "not_found", "There is nothing at this path", hint: "see the paths under /v1/")
    case .methodNotAllowed(let allowed):
      self.init(
        405, "method_not_allowed", "Use \(allowed.joined(separator: " or ")) here",
        .init(name: "Allow", value: allowed.joined(separator: ", ")))
    case .unknownParameter(let known):
      self.init(
        400, "unknown_parameter", "A parameter of the query is unknown",
        hint: known.isEmpty ? "there are none here" : "there are \(known.joined(separator: ", "))")
    case .malformedParameter(let name, let rule): self.init(400, "malformed_parameter", "\(name) \(rule)")
    case .bodyNotExpected: self.init(400, "body_not_expected", "This request has no body")
    case .malformedKey:
      self.init(
        400, "malformed_key", "A key is named by its hash, 43 characters of base64url, or by the first 6 or more",
        hint: "log lines have the first 16; sallyport keys list shows all")
    case .unknownKey: self.init(404, "unknown_key", "No such key is registered", hint: "sallyport keys list shows all")
    case .ambiguousKey:
      self.init(409, "ambiguous_key", "Several keys begin like this", hint: "give more characters of the hash")
    case .unknownSession:
      self.init(
        404, "unknown_session", "No such session is open at this gate",
        hint: "sallyport sessions list shows all; each gate knows its own")
    case .storeUnavailable(let error):
      self.init(
        503, "store_unavailable", "The store does not do it now: \(error.step)",
        hint: "see /readyz?verbose and the gate's log", .init(name: "Retry-After", value: "5"))
    case .configurationRefused(let reason):
      let (faults, advice) = Self.parts(of: reason)
      self.init(
        409, "configuration_refused", "The configuration was not reloaded: \(faults)",
        hint: advice + "the old one is served on; sallyport check tells what is wrong with the new one")
    case .upgradeRefused(let reason):
      let (faults, advice) = Self.parts(of: reason)
      self.init(
        409, "upgrade_refused", "The gate was not upgraded: \(faults)",
        hint: advice
          + "the process that ran before serves on; its log, and that of the program that was started, say more")
    case .malformedRequest(let fault):
      let answer = RequestRefusal.malformedRequest(fault).answer
      self.init(answer.status, answer.code, answer.text)
    }
  }

  /// The faults of a reason that was told as lines, each on its own, and the first hint among them: empty, or with what
  /// parts it from a further one.
  private static func parts(of reason: String) -> (faults: String, advice: String) {
    let lines = reason.split(whereSeparator: \.isNewline)
    let mark = "hint: "
    let advice = lines.first { $0.hasPrefix(mark) }.map { "\($0.dropFirst(mark.count)); " } ?? ""
    return (lines.filter { !$0.hasPrefix(mark) }.joined(separator: "\n"), advice)
  }

  func response(id: String) -> Response {
    var members = "\"error\":\(JSONText.quote(text)),\"code\":\(JSONText.quote(code))"
    if let hint { members += ",\"hint\":\(JSONText.quote(hint))" }
    return Response.admin(status: status, "application/json", "{\(members)}\n", headers: headers)
      .adding("X-Request-Id", id)
  }
}

extension Response {
  static func admin(
    status: Int = 200, _ type: String, _ body: String, headers: [HeaderFields.Field] = []
  ) -> Response {
    let common = [
      HeaderFields.Field(name: "Content-Type", value: type), .init(name: "Cache-Control", value: "no-store"),
    ]
    return Response(status: status, headers: HeaderFields(common + headers), body: Array(body.utf8))
  }

  func adding(_ name: String, _ value: String) -> Response {
    var headers = headers
    headers.append(name, value)
    return Response(status: status, headers: headers, body: body, closes: closes)
  }
}
