internal import ByteCoding
internal import Foundation
internal import MFAWire

/// A JSON-RPC 2.0 request, without its parameters.
struct RPCRequest: Decodable {
  let method: String
  /// The id of the request; `nil` for a notification, which gets no answer.
  let id: RPCID?
  let hasParameters: Bool
  /// The member `idempotencyKey`, which JSON-RPC does not have: it is the `Idempotency-Key` of REST.
  let idempotencyKey: String?

  private enum Key: String, CodingKey { case jsonrpc, method, id, params, idempotencyKey }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    guard try container.decode(String.self, forKey: .jsonrpc) == "2.0" else {
      throw DecodingError.dataCorruptedError(forKey: .jsonrpc, in: container, debugDescription: "is not 2.0")
    }
    method = try container.decode(String.self, forKey: .method)
    id = container.contains(.id) ? try container.decode(RPCID.self, forKey: .id) : nil
    hasParameters = container.contains(.params)
    idempotencyKey = try container.decodeIfPresent(String.self, forKey: .idempotencyKey)
  }

  /// Parses one message.
  ///
  /// - Throws: `RPCError.parse`, `.invalidRequest` or `.invalidParameters`, to be answered with `RPCID(ofRefused:for:)`.
  init(_ text: [UInt8]) throws(RPCError) {
    guard StreamSafeText.accepts(json: text) else {
      throw .invalidParameters(PublicRefusal(OperationInputError.heapedMarks))
    }
    guard JSONGrammar.accepts(text) else { throw .parse }
    do {
      self = try JSONDecoder().decode(RPCRequest.self, from: Data(text))
    } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
      throw .parse
    } catch {
      throw .invalidRequest
    }
  }
}

/// A message of which only the id is read.
private struct IdentifiedMessage: Decodable {
  let id: RPCID?
}

/// The id of a request.
enum RPCID: Codable, Sendable, Hashable {
  case text(String)
  case number(Int64)
  case null

  /// Reads the id for the answer to a message that `RPCRequest(_:)` has refused. It is `null` if the message has no
  /// readable id (JSON-RPC 2.0, section 5), and if the id itself may be the text that was refused.
  init(ofRefused text: [UInt8], for error: RPCError) {
    // The grammar admits only ASCII names of members, and no other member is decoded, so no text with many combining
    // marks is compared.
    guard case .invalidParameters = error, JSONGrammar.accepts(text),
      let id = try? JSONDecoder().decode(IdentifiedMessage.self, from: Data(text)).id
    else {
      self = .null
      return
    }
    if case .text(let word) = id, !word.utf8.allSatisfy({ $0 < 0x80 }) {
      self = .null
    } else {
      self = id
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let number = try? container.decode(Int64.self) {
      self = .number(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .null: try container.encodeNil()
    }
  }
}

/// The reason why a request failed (JSON-RPC 2.0, section 5.1).
enum RPCError: Error, Sendable, Hashable {
  case parse
  case invalidRequest
  case unknownMethod
  case invalidParameters(PublicRefusal)
  case refused(PublicRefusal)
  case internalError

  init(_ refusal: PublicRefusal) {
    switch refusal.code {
    case .invalidRequest: self = .invalidParameters(refusal)
    case .internalError: self = .internalError
    default: self = .refused(refusal)
    }
  }

  /// The reason for the log.
  var cause: String {
    switch self {
    case .parse: "malformed_json"
    case .invalidRequest: "no_request"
    case .unknownMethod: "unknown_operation"
    case .invalidParameters(let refusal), .refused(let refusal): refusal.code.rawValue
    case .internalError: "internal_error"
    }
  }

  var code: Int {
    switch self {
    case .parse: -32700
    case .invalidRequest: -32600
    case .unknownMethod: -32601
    case .invalidParameters: -32602
    case .internalError: -32603
    case .refused: -32000
    }
  }

  /// The refusal in `error.data`, the same as in REST.
  var refusal: PublicRefusal {
    switch self {
    case .parse: PublicRefusal(.invalidRequest, "Parse error")
    case .invalidRequest: PublicRefusal(.invalidRequest, "Invalid request")
    case .unknownMethod: PublicRefusal(.notFound, "Method not found")
    case .invalidParameters(let refusal), .refused(let refusal): refusal
    case .internalError: PublicRefusal(.internalError, "Internal error")
    }
  }
}

/// The messages that the server sends.
enum RPCAnswer {
  /// - Parameter result: the result, as JSON.
  static func success(_ result: [UInt8], id: RPCID) -> [UInt8] {
    var text = Array("{\"jsonrpc\":\"2.0\",\"id\":".utf8)
    text += Self.text(of: id)
    text += Array(",\"result\":".utf8)
    text += result
    text.append(UInt8(ascii: "}"))
    return text
  }

  static func failure(_ error: RPCError, id: RPCID, requestID: String) -> [UInt8] {
    var text = Array("{\"jsonrpc\":\"2.0\",\"id\":".utf8) + Self.text(of: id)
    text += Array(",\"error\":{\"code\":\(error.code),\"message\":".utf8)
    text += Self.text(of: error.refusal.text)
    text += Array(",\"data\":".utf8) + error.refusal.body(requestID: requestID)
    return text + Array("}}".utf8)
  }

  static func notification(_ method: String, _ parameters: some Encodable) throws -> [UInt8] {
    var text = Array("{\"jsonrpc\":\"2.0\",\"method\":".utf8)
    text += Self.text(of: method)
    text += Array(",\"params\":".utf8)
    text += try WireCoding.encode(parameters)
    text.append(UInt8(ascii: "}"))
    return text
  }

  // Encoding strings and integers cannot fail.
  private static func text(of value: some Encodable) -> [UInt8] {
    (try? WireCoding.encode(value)) ?? Array("null".utf8)
  }
}
