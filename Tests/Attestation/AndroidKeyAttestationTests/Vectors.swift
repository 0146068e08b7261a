import AndroidKeyAttestation
import ByteCoding
import Foundation
import TestSupport
import Testing

/// Real chains of Android devices, which third parties have published, and changes of them with verdicts.
///
/// They are read from the folder `android` in `SALLYPORT_VECTORS`, otherwise in `../shared/vectors` next to the package.
/// They are not part of the project: if they are absent, the tests that need them are skipped with `absence`.
enum Vectors {
  static let absence: Comment = "the folder of real Android chains is missing (SALLYPORT_VECTORS)"

  /// Whether the files exist. A separate test checks their contents.
  static let arePresent = FileManager.default.fileExists(atPath: file("android-key-attestation.json").path)
  static let chains: [RealChain] = (try? read("android-key-attestation.json")) ?? []
  static let cases: [ChangedChain] = (try? read("cases.json")) ?? []
  static let leaves: [RealLeaf] = (try? read("leaves.json")) ?? []

  static func read<Content: Decodable>(_ name: String) throws -> Content {
    try JSONDecoder().decode(Content.self, from: Data(contentsOf: file(name)))
  }

  static func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: file(name))) }

  static func chain(named name: String) throws -> RealChain { try #require(chains.first { $0.name == name }) }

  static let statusList = try? AndroidStatusList(bytes("status/status-2026-03-24.json"))

  private static func file(_ name: String) -> URL {
    let folder =
      if let path = ProcessInfo.processInfo.environment["SALLYPORT_VECTORS"] {
        URL(fileURLWithPath: path)
      } else {
        ProjectFile.url("../shared/vectors")
      }
    return folder.appending(path: "android/" + name)
  }
}

/// A chain as a device gave it.
struct RealChain: Decodable, Sendable, CustomTestStringConvertible {
  struct App: Decodable, Sendable {
    let package: String
    let signatureDigests: [String]
  }

  struct Expectation: Decodable, Sendable {
    let chain: String
    let verdict: String
    let reasons: [String]
    let reasonsWithGrapheneBootKeys: [String]?
  }

  struct Facts: Decodable, Sendable {
    let provisioning: String
    let keyDescription: JSON
    let hardwareEnforced: JSON
    let softwareEnforced: JSON
  }

  struct Signature: Decodable, Sendable {
    let over: String
    let signature: String
  }

  let name: String
  let chain: [String]
  let challenge: String
  let at: String
  let app: App
  let facts: Facts
  let expect: Expectation
  let signature: Signature?

  var testDescription: String { name }
  var certificates: [[UInt8]] { get throws { try chain.map { try #require(Base64.decode($0)) } } }
  var challengeBytes: [UInt8] { get throws { try #require(Base64.decode(challenge)) } }
  var instant: Timestamp { get throws { try #require(Timestamp(rfc3339: at)) } }
  var policy: AndroidAppPolicy {
    get throws {
      AndroidAppPolicy(
        package: app.package, signers: Set(try app.signatureDigests.map { try #require(Hex.decode($0)) }))
    }
  }

  /// The expected reasons. Six chains of system apps name no signer, so that a policy cannot, either.
  func reasons(_ listed: [String]? = nil) -> Set<String> {
    Set(listed ?? expect.reasons).union(app.signatureDigests.isEmpty ? ["signer_differs"] : [])
  }
}

/// A change of a real chain, and whether it is accepted.
struct ChangedChain: Decodable, Sendable, CustomTestStringConvertible {
  struct Change: Decodable, Sendable {
    struct App: Decodable, Sendable {
      let package: String
      let signatureDigest: String
    }

    struct Policy: Decodable, Sendable { let securityLevel: String }

    let challenge: String?
    let at: String?
    let drop: [Int]?
    let flip: [JSON]?
    let prepend: [JSON]?
    let replace: [JSON]?
    let reverse: Bool?
    let app: App?
    let status: String?
    let policy: Policy?
  }

  let `case`: String
  let vector: String
  let change: Change
  let expect: String

  var testDescription: String { "\(vector): \(self.case)" }
}

/// A single certificate for parsers.
struct RealLeaf: Decodable, Sendable, CustomTestStringConvertible {
  let name: String
  let certificate: String
  let keyDescription: JSON

  var testDescription: String { name }
}

/// Any JSON value.
indirect enum JSON: Decodable, Sendable, Hashable {
  case null
  case boolean(Bool)
  case number(Int)
  case text(String)
  case list([JSON])
  case object([String: JSON])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let truth = try? container.decode(Bool.self) {
      self = .boolean(truth)
    } else if let number = try? container.decode(Int.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([JSON].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  var members: [String: JSON] { if case .object(let members) = self { members } else { [:] } }
  var text: String? { if case .text(let text) = self { text } else { nil } }
  var number: Int? { if case .number(let number) = self { number } else { nil } }
}
