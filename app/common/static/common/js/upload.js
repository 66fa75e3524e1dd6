// One file as multipart form data. XMLHttpRequest, because fetch cannot tell how much of a body has been sent.
import { ApiError, BASE, requestHeaders, unreachable } from "./api.js";

function answer(request) {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return null;
  }
}

/** Send `file`; `onProgress(share)` from 0 to 1. Resolves {status, body}; rejects with ApiError. */
export function upload(path, file, onProgress = () => {}, method = "POST") {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const body = new FormData();
    body.append("file", file, file.name);
    request.open(method, BASE + path);
    requestHeaders(method, { body }).forEach((value, name) => request.setRequestHeader(name, value));
    request.upload.addEventListener("progress", (event) => event.lengthComputable && onProgress(event.loaded / event.total));
    request.addEventListener("error", () => reject(unreachable()));
    request.addEventListener("load", () => {
      const parsed = answer(request);
      if (request.status < 300) resolve({ status: request.status, body: parsed });
      else reject(ApiError.from(request.status, parsed, request.getResponseHeader("Retry-After")));
    });
    request.send(body);
  });
}
