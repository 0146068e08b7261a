internal import Commands
internal import ConfigurationEngine
internal import Settings

extension SettingsLoader {
  /// Reads the configuration.
  ///
  /// - Throws: `.configuration` with one line for each fault.
  func settings() throws(Failure) -> GateSettings {
    do throws(ConfigurationErrors) {
      return try load()
    } catch {
      throw Failure(error, hint: file == nil ? ConfigurationSearch(environment: environment).advice : nil)
    }
  }
}
