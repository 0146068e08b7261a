internal import AndroidKeyAttestation
public import Cryptography
internal import Settings

/// Reads the files of the policy for Android devices.
public enum AndroidFiles {
  /// The keys of systems other than the makers'.
  ///
  /// - Parameter key: The setting that names the file, for the error.
  public static func bootKeys(in file: String, for key: String) throws(StartError) -> Set<[UInt8]> {
    let content = try SettingFile.content(of: file, for: key)
    do throws(AndroidBootKeysError) {
      return try AndroidBootKeys(content).keys
    } catch {
      throw StartError(
        key, "\(file): \(error)",
        hint: "write the SHA-256 of one key per line, or use the JSON that GrapheneOS publishes")
    }
  }

  /// The keys of simulated roots, at least one.
  public static func roots(in file: String) throws(StartError) -> [IssuerKey] {
    let key = "app_attest.trust.android_root_file"
    let content = try SettingFile.content(of: file, for: key)
    do throws(CryptographyError) {
      let roots = try Certificate.certificates(pem: String(decoding: content, as: UTF8.self))
      guard !roots.isEmpty else { throw CryptographyError.malformedCertificate("no certificate") }
      var keys: [IssuerKey] = []
      for root in roots { keys.append(try IssuerKey(spki: root.subjectPublicKeyInfo)) }
      return keys
    } catch {
      throw StartError(key, "\(file): \(error)", hint: "set it to a PEM file of root certificates")
    }
  }
}
