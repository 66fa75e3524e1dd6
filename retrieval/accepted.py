"""What may be uploaded, said by the page before anything is sent; what a file is, its reader decides by the content."""

SUFFIXES = (
    ".pdf,.docx,.docm,.doc,.pptx,.pptm,.ppsx,.ppt,.xlsx,.xlsm,.xlsb,.xls,.odt,.ods,.odp,.odg,.fodt,.fods,.fodp,.rtf,.epub,"
    ".html,.htm,.xhtml,.mht,.mhtml,.md,.markdown,.rst,.csv,.tsv,.json,.jsonl,.ipynb,.eml,.msg,.mbox,"
    ".png,.jpg,.jpeg,.tif,.tiff,.webp,.gif,.bmp,.txt,.log,.zip,text/*"
)
"""For a file dialog; whatever else holds text is read too when it is dropped on the page."""
WORDS = (
    "PDF, Word, Excel, PowerPoint, OpenDocument, RTF, e-books, HTML, Markdown, reStructuredText, CSV, JSON, Jupyter, "
    "e-mail, plain text, scans and pictures with text, and ZIP archives of these."
)
