internal import Foundation

/// An attestation object of Web Authentication from the tests of another project.
public struct ForeignAttestation: Decodable, Sendable {
  /// The repository on GitHub.
  public let repo: String
  /// The object, in hex.
  public let attestationObject: String

  /// The folder in the shared world.
  public static let folder = "webauthn"

  /// Reads the 90 objects in the shared world.
  public static func read() throws -> [ForeignAttestation] {
    let file = SharedWorld.url("\(folder)/attestation-objects-of-other-projects.json")
    return try JSONDecoder().decode([ForeignAttestation].self, from: Data(contentsOf: file))
  }
}
