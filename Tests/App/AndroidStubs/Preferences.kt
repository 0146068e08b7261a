package android.content

interface SharedPreferences {
  interface Editor {
    fun putBoolean(key: String, value: Boolean): Editor
    fun putLong(key: String, value: Long): Editor
    fun commit(): Boolean
  }

  fun edit(): Editor
  fun getBoolean(key: String, defValue: Boolean): Boolean
  fun getLong(key: String, defValue: Long): Long
}

abstract class Context {
  abstract fun getSharedPreferences(name: String, mode: Int): SharedPreferences

  companion object {
    const val MODE_PRIVATE = 0
  }
}
