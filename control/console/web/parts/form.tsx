/** Fields of forms, and what was entered in them. */
import type { ComponentChildren, InputHTMLAttributes } from 'preact'
import { useContext } from 'preact/hooks'
import { FieldProblems, useFieldProblem, useProblemId } from './field-problems.ts'
import { isChecked, useFilled } from './prefill.ts'
import { address, setQuery } from './router.ts'

/** The text of a field as it was entered; '' where there is no such field. */
export function enteredIn(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value : ''
}

/** The same without spaces around it. */
export const textIn = (form: FormData, name: string): string => enteredIn(form, name).trim()

/** Handles `onSubmit`: the browser itself sends nothing. */
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
  const isSecret = input.type === 'password' || input.type === 'file'
  const filled = useFilled(isSecret || typeof name !== 'string' ? undefined : name)
  const field = (
    <label>
      {label} {hint !== undefined && <small>({hint})</small>}{' '}
      <input
        {...input}
        {...(filled !== undefined && { defaultValue: filled })}
        {...(problem !== undefined && { 'aria-invalid': true })}
      />
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

/** Shows the problem of a field. */
export const FieldProblem = ({ name, text }: { name: string; text: string | undefined }) => (
  <small id={useProblemId(name)} data-problem={name} class="problem" hidden={text === undefined}>
    {text}
  </small>
)

interface FlagProps {
  readonly label: ComponentChildren
  readonly name: string
  readonly isOn?: boolean
}

/** A box that says yes or no. */
export function Flag({ label, name, isOn = false }: FlagProps) {
  const filled = useFilled(name)
  const isFirstOn = filled === undefined ? isOn : isChecked(filled)
  return (
    <label class="flag">
      <input name={name} type="checkbox" defaultChecked={isFirstOn} /> {label}
    </label>
  )
}

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

export function Choice({ label, name, value, options, onChange }: ChoiceProps) {
  const filled = useFilled(name)
  const first = filled !== undefined && Object.hasOwn(options, filled) ? filled : value
  return (
    <label>
      {label} {/* Not by its own value: drawn again, it keeps what was chosen. */}
      <select name={name} onChange={(event) => onChange?.(event.currentTarget.value)}>
        {Object.entries(options).map(([each, text]) => (
          <option key={each} value={each} selected={each === first}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

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
