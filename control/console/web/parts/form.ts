/** What was entered in a form. */

/** The text of a field as it was entered; '' where there is no such field. */
export function enteredIn(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value : ''
}

/** The same without spaces around it. */
export const textIn = (form: FormData, name: string): string => enteredIn(form, name).trim()
