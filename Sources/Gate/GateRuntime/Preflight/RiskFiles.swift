public import Cryptography

/// Reads the files of the risk metric.
public enum RiskFiles {
  /// The private key of the developer account.
  ///
  /// - Parameter key: The setting that names the file, for the error.
  public static func key(in file: String, for key: String) throws(StartError) -> P256PrivateKey {
    let content = try SettingFile.content(of: file, for: key)
    do throws(CryptographyError) {
      return try P256PrivateKey(pkcs8PEM: String(decoding: content, as: UTF8.self))
    } catch {
      throw StartError(
        key, "\(file): \(error)", hint: "name the file AuthKey_….p8 that the developer account offers for download")
    }
  }
}
