internal import Settings

extension SettingsLoader {
  /// Reads the configuration.
  ///
  /// - Throws: `.configuration` with one line for each fault.
  func settings() throws(SallyportError) -> GateSettings {
    do throws(ConfigurationErrors) {
      return try load()
    } catch {
      let hint = file == nil ? "\nhint: \(ConfigurationSearch(environment: environment).advice)" : ""
      throw SallyportError(.configuration, lines: error.description + hint)
    }
  }
}
