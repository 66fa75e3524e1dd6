"""What may be uploaded, said by the page before anything is sent; what a file is, its reader decides by the content."""

SUFFIXES = (
    ".pdf,.docx,.doc,.pptx,.ppsx,.ppt,.xlsx,.xls,.odt,.ods,.odp,.odg,.rtf,.epub,.html,.htm,.xhtml,.md,.markdown,.rst,.csv,.tsv,"
    ".json,.jsonl,.eml,.msg,.png,.jpg,.jpeg,.tif,.tiff,.webp,.gif,.bmp,.txt,.log,.zip,text/*"
)
"""For a file dialog; whatever else holds text is read too when it is dropped on the page."""
WORDS = (
    "PDF, Word, Excel, PowerPoint, OpenDocument, RTF, e-books, HTML, Markdown, reStructuredText, CSV, JSON, e-mail, "
    "plain text, scans and pictures with text, and ZIP archives of these."
)
