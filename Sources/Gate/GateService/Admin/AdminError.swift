public import AttestGate
internal import ByteCoding
internal import Wire
public import Transport

/// Why the admin server refuses a request.
public enum AdminError: Error, Sendable, Hashable {
  /// The token is missing or wrong.
  case unauthorized
  /// A web page requests a change.
  case foreignOrigin
  /// The `Host` of the request is not this machine.
  case foreignHost
  case notFound
  case methodNotAllowed(allowed: [String])
  case unknownParameter(known: [String])
  case malformedParameter(String, rule: String)
  case bodyNotExpected
  /// The key name is neither a hash nor the beginning of one.
  case malformedKey
  case unknownKey
  /// At least two keys begin with the given characters. The values are more of the hashes of some of them.
  case ambiguousKey(candidates: [String])
  case unknownSession
  /// At least two sessions begin with the given characters. The values are the ids of some of them.
  case ambiguousSession(candidates: [String])
  /// Several routes have this server.
  case ambiguousUpstream(routes: [String])
  /// No route has this server.
  case unknownUpstream
  /// The route would have no server left.
  case lastUpstream
  /// The row of the key has a value that no gate has written.
  case unreadableKey(KeyHash, reason: String)
  case storeUnavailable(StoreError)
  /// The old configuration stays active.
  case configurationRefused(reason: String)
  /// No new process took over.
  case upgradeRefused(reason: String)
  case malformedRequest(RequestError)
}

/// The answer for a fault, as `{"error", "code", "hint"}`.
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

  init(_ fault: AdminError) {
    switch fault {
    case .unauthorized:
      self.init(
        401, "unauthorized", "The admin server requires its token",
        hint: "send Authorization: Bearer with the first line that admin.token_file had when the gate started; a "
          + "changed file counts after SIGUSR2, which upgrades the gate, or a restart",
        .init(name: "WWW-Authenticate", value: "Bearer"))
    case .foreignOrigin: self.init(403, "foreign_origin", "Web pages must not change anything here")
    case .foreignHost:
      self.init(
        421, "foreign_host", "The Host of the request is not localhost or a loopback address",
        hint: "use localhost or 127.0.0.1 in the URL, as in http://localhost/readyz")
    case .notFound:
      self.init(
        404, "not_found", "There is nothing at this path",
        hint: "the admin server lists its paths at /v1/openapi.json")
    case .methodNotAllowed(let allowed):
      self.init(
        405, "method_not_allowed", "Use \(allowed.joined(separator: " or ")) here",
        .init(name: "Allow", value: allowed.joined(separator: ", ")))
    case .unknownParameter(let known):
      self.init(
        400, "unknown_parameter", "The query has an unknown parameter",
        hint: known.isEmpty ? "this path accepts no parameters" : "this path accepts \(known.joined(separator: ", "))")
    case .malformedParameter(let name, let rule): self.init(400, "malformed_parameter", "\(name) \(rule)")
    case .bodyNotExpected: self.init(400, "body_not_expected", "This method accepts no body")
    case .malformedKey:
      self.init(
        400, "malformed_key", "The key must be a hash of 43 base64url characters, or the first 6 or more of them",
        hint: "log lines show the first 16 characters; sallyport keys list shows complete hashes")
    case .unknownKey:
      self.init(404, "unknown_key", "No such key is registered", hint: "sallyport keys list shows all keys")
    case .ambiguousKey(let candidates):
      self.init(
        409, "ambiguous_key", "Several keys begin with these characters: \(Self.list(candidates))",
        hint: "give more characters of the hash")
    case .unreadableKey(let hash, let reason):
      self.init(
        503, "key_unreadable", "The row of this key cannot be read: \(reason)",
        hint:
          "restore a backup, or remove the key: sallyport keys rm \(hash.short); its device then registers another one")
    case .unknownSession:
      self.init(
        404, "unknown_session", "No such session is open at this gate",
        hint: "sallyport sessions list shows all sessions of this gate; other gates have their own")
    case .ambiguousSession(let candidates):
      self.init(
        409, "ambiguous_session", "Several sessions begin with these characters: \(Self.list(candidates))",
        hint: "give more characters of the id")
    case .ambiguousUpstream(let routes):
      self.init(
        409, "ambiguous_upstream", "Several routes have this server: \(Self.list(routes))",
        hint: "name one of them: --route PATH")
    case .unknownUpstream:
      self.init(
        404, "unknown_upstream", "No route has this server",
        hint: "sallyport upstreams list shows the servers, in the notation that is expected here")
    case .lastUpstream:
      self.init(
        409, "last_upstream", "The route has no other server that is not drained",
        hint: "add another one to the route, or resume a drained one: sallyport upstreams resume")
    case .storeUnavailable(let error):
      self.init(
        503, "store_unavailable", "The store is unavailable: \(error.step)",
        hint: "see /readyz?verbose and the gate's log", .init(name: "Retry-After", value: "5"))
    case .configurationRefused(let reason):
      let (faults, advice) = Self.parts(of: reason)
      self.init(
        409, "configuration_refused", "The configuration was not reloaded: \(faults)",
        hint: advice + "the old configuration stays active; sallyport check shows what is wrong with the new one")
    case .upgradeRefused(let reason):
      let (faults, advice) = Self.parts(of: reason)
      self.init(
        409, "upgrade_refused", "The gate was not upgraded: \(faults)",
        hint: advice
          + "the old process continues to serve; see its log and the log of the new process")
    case .malformedRequest(let fault):
      let report = RequestRefusal.malformedRequest(fault).report
      self.init(report.code.definition.status, report.code.rawValue, report.text)
    }
  }

  /// The most candidates that a refusal lists.
  static let mostCandidates = 5

  private static func list(_ candidates: [String]) -> String {
    candidates.prefix(mostCandidates).joined(separator: ", ") + (candidates.count > mostCandidates ? " and more" : "")
  }

  /// Splits the lines of `reason` into the faults and the first hint. The hint is empty, or ends with a separator for
  /// a second hint.
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
