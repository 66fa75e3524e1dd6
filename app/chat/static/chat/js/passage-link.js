// The address of a passage: its document, at the page, with the very characters marked.

/** `passage`: {document_id, document_version, page, start, end}, as sources and searches have it. */
export function passageLink(passage) {
  const query = new URLSearchParams();
  if (passage.page) query.set("page", passage.page);
  if (passage.document_version) query.set("v", passage.document_version);
  const page = query.size ? `?${query}` : "";
  const marked = passage.start === undefined || passage.start === null ? "" : `#p=${passage.start}-${passage.end}`;
  return `/documents/${passage.document_id}/${page}${marked}`;
}
