internal import Foundation

/// A test of Wycheproof (C2SP/wycheproof, `testvectors_v1`).
public struct WycheproofTest: Sendable, CustomStringConvertible {
  /// What tests of one group have in common.
  public struct Group: Sendable {
    /// Of groups that have a name.
    public let comment: String
    /// The members of `publicKey` that are texts.
    public let publicKey: [String: String]
    /// The JSON of `public` or, without one, of `private`: a JWK or a set of them; empty if there is neither.
    public let keyJSON: [UInt8]
  }

  /// What the authors expect. What is `acceptable` follows an older standard or is a matter of policy.
  public enum Result: String, Sendable { case valid, acceptable, invalid }

  public struct Malformed: Error {
    public let file: String
  }

  public let id: Int
  public let comment: String
  public let flags: Set<String>
  public let result: Result
  /// The members of the test that are texts.
  public let texts: [String: String]
  public let group: Group

  public var description: String { "\(id) \(group.comment) \(comment)" }

  /// The folder of the files in the shared world.
  public static let folder = "wycheproof"

  /// Reads the tests of a file in the shared world.
  public static func read(_ file: String) throws -> [WycheproofTest] {
    let data = try Data(contentsOf: SharedWorld.url("\(folder)/\(file)"))
    guard let content = try JSONSerialization.jsonObject(with: data) as? [String: Any],
      let groups = content["testGroups"] as? [[String: Any]], let count = content["numberOfTests"] as? Int
    else { throw Malformed(file: file) }
    let tests = try groups.flatMap { members in
      let group = try Group(members)
      return try (members["tests"] as? [[String: Any]] ?? []).map { members in
        guard let test = WycheproofTest(members, in: group) else { throw Malformed(file: file) }
        return test
      }
    }
    guard tests.count == count else { throw Malformed(file: file) }
    return tests
  }

  private init?(_ members: [String: Any], in group: Group) {
    guard let id = members["tcId"] as? Int, let comment = members["comment"] as? String,
      let result = (members["result"] as? String).flatMap(Result.init)
    else { return nil }
    self.id = id
    self.comment = comment
    self.result = result
    self.group = group
    flags = Set(members["flags"] as? [String] ?? [])
    texts = members.compactMapValues { $0 as? String }
  }
}

extension WycheproofTest.Group {
  fileprivate init(_ members: [String: Any]) throws {
    comment = members["comment"] as? String ?? ""
    publicKey = (members["publicKey"] as? [String: Any] ?? [:]).compactMapValues { $0 as? String }
    keyJSON =
      try (members["public"] ?? members["private"]).map {
        Array(try JSONSerialization.data(withJSONObject: $0))
      } ?? []
  }
}
