import Foundation
import TestSupport
import Testing

/// Checks rules of the app's libraries in their sources.
@Suite("The app's libraries")
struct AppSourcesTests {
  /// The text of each Swift file in a folder of `Sources`, by its path.
  private static func files(in folder: String) throws -> [String: String] {
    let place = ProjectFile.path("Sources/" + folder)
    var files: [String: String] = [:]
    for file in try FileManager.default.subpathsOfDirectory(atPath: place) where file.hasSuffix(".swift") {
      files[folder + "/" + file] = try String(contentsOfFile: place + "/" + file, encoding: .utf8)
    }
    return files
  }

  private static func imports(in text: String) -> Set<String> {
    Set(text.matches(of: /(?m)^ *(?:public |package |internal )?import (?:\w+ )?(\w+)/).map { String($0.output.1) })
  }

  @Test("A-163 the view models import no networking and no clock, and the page draws without deciding")
  func viewModels() throws {
    let allowed: Set<String> = ["ByteCoding", "Combine", "Locking", "MFAClient", "MFAWire"]
    for (file, text) in try Self.files(in: "App/MFAViewModels") {
      #expect(Self.imports(in: text).isSubset(of: allowed), "\(file)")
      #expect(!text.contains("ContinuousClock") && !text.contains("Date()") && !text.contains(".sleep("), "\(file)")
    }
  }

  @Test("A-160 no call of the app's libraries takes a completion handler")
  func completionHandlers() throws {
    for folder in ["App/AttestClient", "App/MFAClient", "App/MFAViewModels"] {
      for (file, text) in try Self.files(in: folder) {
        #expect(text.firstMatch(of: /(?m)public .*(completion|callback|handler): *@escaping/) == nil, "\(file)")
      }
    }
  }

  @Test("A-165 the simulated phone is linked by the client tool alone, which has the lab")
  func simulation() throws {
    var users: Set<String> = []
    for (file, text) in try Self.files(in: "") where Self.imports(in: text).contains("SimulatedPhone") {
      users.insert(file.split(separator: "/").dropFirst().first.map(String.init) ?? file)
    }
    #expect(users == ["attest"])
  }

  @Test("B-068 an app shows the secret of an authenticator while it is set up; it keeps none and makes no code")
  func authenticatorSecrets() throws {
    for folder in ["App/MFAClient", "App/MFAViewModels"] {
      for (file, text) in try Self.files(in: folder) {
        #expect(!text.contains("HMAC"), "\(file)")
        let isSetUp = file.contains("/Factor")
        #expect(isSetUp || !text.contains("otpauth") && !text.contains("enrollAuthenticator"), "\(file)")
        // All that the set-up saves is that this device is no longer trusted.
        #expect(!isSetUp || text.matches(of: /save\(/).count == text.matches(of: /trust\.save\(nil\)/).count, "\(file)")
      }
    }
  }

  @Test("A-121 the guide for devices has the two texts that iOS shows")
  func purposes() throws {
    let guide = try ProjectFile.text("Sources/App/MFAClient/MFAClient.docc/OnADevice.md")
    #expect(guide.contains("We use Face ID to securely authenticate your identity for account access."))
    #expect(guide.contains("Connect to local server for testing MFA functionality."))
  }
}
