"""Fields of forms in the look of the house."""

from django import template
from django.forms import BoundField, CheckboxInput
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def control(field: BoundField) -> SafeString:
    """The control of a field; its label says what goes in, so it has no placeholder."""
    widget = field.field.widget
    widget.attrs.pop("placeholder", None)
    attrs: dict[str, str | bool] = {} if is_check(field) else {"class": "input"}
    if field.errors:
        attrs |= {"aria-invalid": "true", "aria-describedby": f"{field.auto_id}_error"}
    return field.as_widget(attrs=attrs)


@register.filter
def is_check(field: BoundField) -> bool:
    """Whether it is a box to tick, whose label stands behind it."""
    return isinstance(field.field.widget, CheckboxInput)
