package com.example.attest

import android.content.Context
import kotlin.concurrent.thread
import okhttp3.HttpUrl.Companion.toHttpUrl
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.WebSocketListener

/** The surroundings of the article's sample. */
fun use(context: Context, http: OkHttpClient, listener: WebSocketListener, showOffline: (Exception) -> Unit) {
  // SAMPLE
}
