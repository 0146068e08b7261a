internal import ConfigurationEngine

/// Reads a file that a setting names.
enum SettingFile {
  /// Returns the bytes of `file`.
  ///
  /// - Parameter key: The setting that names the file, for the error.
  /// - Throws: `StartError` with the reason of the system if the file cannot be read.
  static func content(of file: String, for key: String) throws(StartError) -> [UInt8] {
    do throws(FileContentError) {
      return try FileContent.read(file)
    } catch {
      throw StartError(key, "\(file): \(error.reason)", hint: "name a file that the gate's user can read")
    }
  }
}
