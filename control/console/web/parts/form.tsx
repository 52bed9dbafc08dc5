/** Fields of forms, and what was entered in them. */
import type { ComponentChildren, InputHTMLAttributes } from 'preact'
import { useContext } from 'preact/hooks'
import { FieldProblems, problemId, useFieldProblem } from './field-problems.ts'
import { address, setQuery } from './router.ts'

/** The text of a field as it was entered; '' where there is no such field. */
export function enteredIn(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value : ''
}

/** The same without spaces around it. */
export const textIn = (form: FormData, name: string): string => enteredIn(form, name).trim()

/** For `onSubmit`: nothing is sent by the browser itself. */
export const onForm = (work: (form: FormData) => void) => (event: SubmitEvent) => {
  event.preventDefault()
  if (event.currentTarget instanceof HTMLFormElement) work(new FormData(event.currentTarget))
}

type FieldProps = InputHTMLAttributes & {
  readonly label: ComponentChildren
  readonly hint?: string | undefined
}

export function Field({ label, hint, ...input }: FieldProps) {
  const { name } = input
  const isInDialog = useContext(FieldProblems) !== undefined
  const problem = useFieldProblem(typeof name === 'string' ? name : '')
  const field = (
    <label>
      {label} {hint !== undefined && <small>({hint})</small>}{' '}
      <input {...input} {...(problem !== undefined && { 'aria-invalid': true })} />
    </label>
  )
  if (!isInDialog || typeof name !== 'string') return field
  return (
    <>
      {field}
      <FieldProblem name={name} text={problem} />
    </>
  )
}

/** Says what is wrong with a field. */
export const FieldProblem = ({ name, text }: { name: string; text: string | undefined }) => (
  <small id={problemId(name)} class="problem" hidden={text === undefined}>
    {text}
  </small>
)

export const Reason = () => (
  <Field label="Reason" name="reason" required minLength={3} maxLength={500} autoComplete="off" />
)

interface ChoiceProps {
  readonly label: string
  readonly name: string
  readonly value: string
  /** Texts by value. */
  readonly options: Readonly<Record<string, string>>
  readonly onChange?: (value: string) => void
}

export const Choice = ({ label, name, value, options, onChange }: ChoiceProps) => (
  <label>
    {label} {/* Not by its own value: drawn again, it keeps what was chosen. */}
    <select name={name} onChange={(event) => onChange?.(event.currentTarget.value)}>
      {Object.entries(options).map(([each, text]) => (
        <option key={each} value={each} selected={each === value}>
          {text}
        </option>
      ))}
    </select>
  </label>
)

/** A choice that is in the address. */
export const Filter = ({ name, ...choice }: Omit<ChoiceProps, 'value' | 'onChange'>) => (
  <Choice
    {...choice}
    name={name}
    value={address.value.query[name] ?? ''}
    onChange={(value) => setQuery({ [name]: value })}
  />
)

/** Each word means itself. */
export const words = (...all: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(all.map((word) => [word, word]))

export const withAll = (options: Readonly<Record<string, string>>) => ({ '': 'all', ...options })
