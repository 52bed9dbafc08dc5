/**
 * Forms drawn from the schema of the API: the writable fields with their bounds and descriptions.
 */
import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useContext, useEffect, useRef } from 'preact/hooks'
import { type ConsoleAnswer, getRows, send } from '../api/api.ts'
import { isGlobal, may } from '../api/session.ts'
import type { BodySchema } from '../api/views.ts'
import { conflictOf } from './conflict.ts'
import { Above, Dialog } from './dialog.tsx'
import { FormIds, useFieldProblem, useProblemId } from './field-problems.ts'
import { FieldProblem } from './form.tsx'
import { Filled, filledValue, isChecked, useFilled } from './prefill.ts'
import { useResource } from './resource.ts'
import { isLeftToOthers, removeRow, saveRow } from './save-row.ts'
import {
  bodyFrom,
  fieldsOf,
  fieldText,
  rowsAtFirst,
  rowsOf,
  type FormField,
  type FormRow,
} from './schema-fields.ts'
import { Problem } from './text.tsx'

export interface SchemaForm {
  /** The path of the resource, such as `/customers`. */
  readonly path: string
  /** The fields that are always in sight. Absent: all fields that a form can show. */
  readonly names?: readonly string[]
  /** Fields that are folded away. */
  readonly more?: readonly string[]
  /** Where the name of a field is not what people say. */
  readonly labels?: Readonly<Record<string, string>>
  /** Words in place of the description of the API. */
  readonly hints?: Readonly<Record<string, string>>
  /** Words of the choices of a field that are not themselves. */
  readonly words?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Texts that are chosen among these values; '' where they may be empty. */
  readonly among?: Readonly<Record<string, readonly string[]>>
  /** Fields of a new one without which the API refuses it, although its schema does not say so. */
  readonly required?: readonly string[]
  /** Fields that the API needs, and the screen fills in where they are empty. */
  readonly generated?: readonly string[]
  /** Objects that may be absent: each is, where all of its texts are empty. */
  readonly whole?: readonly string[]
  /** The first value of a new one, where it is not the default of the API. */
  readonly initial?: Readonly<Record<string, string>>
  /** A field that is there only while another one has one of these values. */
  readonly when?: Readonly<Record<string, readonly [field: string, ...values: string[]]>>
  /** A choice before the fields that only decides which of them are there. */
  readonly choice?: {
    readonly name: string
    readonly label: string
    readonly options: Readonly<Record<string, string>>
    readonly of: (row: FormRow | undefined) => string
  }
  /** How one row of a list is called, and which of its fields are always in sight. */
  readonly rows?: Readonly<
    Record<string, { readonly one: string; readonly names: readonly string[] }>
  >
  /** The API has the whole row at `…/details`. */
  readonly hasDetails?: true
  /** A row as the form shows it. */
  readonly shown?: (row: FormRow) => FormRow
}

/** A row is known by an id, or by a `uuid` as keys have. */
type ExistingRow = Readonly<{ id: number } | { uuid: string }>

const idOf = (row: ExistingRow): string => ('id' in row ? `${row.id}` : row.uuid)

const asShown = ({ shown }: SchemaForm, row: ExistingRow | undefined): FormRow | undefined =>
  row === undefined ? undefined : (shown?.({ ...row }) ?? { ...row })

/** Only the platform says of which tenant a new one is. */
const isFor = ({ name }: FormField, isNew: boolean): boolean =>
  !/^tenant(_slug)?$/.test(name) || (isNew && isGlobal())

const namesOf = ({ names, more = [] }: SchemaForm) => names && [...names, ...more]

/** Creates or changes what the form was drawn for. `more`: fields that the form does not show. */
export async function saveForm<T = unknown>(
  form: SchemaForm,
  entered: FormData,
  row: ExistingRow | undefined,
  more: FormRow = {},
): Promise<ConsoleAnswer<T>> {
  const drawn = await drawnFields(form, row)
  if (drawn.kind !== 'ok') return drawn
  const { data: fields } = drawn
  const textOf = (name: string): string => allEntered(entered, name)
  const base = asShown(form, row)
  if (row === undefined || base === undefined)
    return send('POST', form.path, { ...bodyOf(form, fields, base, textOf), ...more })
  const path = `${form.path}/${idOf(row)}`
  const isKept = (name: string): boolean => !isLeftToOthers(entered, name)
  const kept = fields.filter(({ name }) => isKept(name))
  return saveRow<T>({
    path,
    shownPath: form.hasDetails === true ? `${path}/details` : path,
    entered,
    body: {
      ...bodyOf(form, kept, base, textOf),
      ...Object.fromEntries(Object.entries(more).filter(([name]) => isKept(name))),
    },
    conflict(now, etag) {
      const theirs = form.shown?.(now) ?? now
      const mine = { body: bodyOf(form, fields, base, textOf), more }
      return conflictOf(fields, { base, theirs, etag }, mine, textOf, form)
    },
  })
}

/**
 * Deletes a row as it was shown.
 *
 * @param seen the version with the changes of others, once they were shown.
 */
export async function removeForm(
  form: Pick<SchemaForm, 'path' | 'labels' | 'words' | 'hasDetails'>,
  row: ExistingRow,
  seen: string | undefined,
): Promise<ConsoleAnswer<unknown>> {
  // Fields that the API lets nobody change are not compared.
  const drawn = await drawnFields({ path: form.path }, row)
  if (drawn.kind !== 'ok') return drawn
  const path = `${form.path}/${idOf(row)}`
  return removeRow({
    path,
    shownPath: form.hasDetails === true ? `${path}/details` : path,
    seen,
    conflict(theirs, etag) {
      const found = conflictOf(
        drawn.data,
        { base: { ...row }, theirs, etag },
        { body: {} },
        noText,
        form,
      )
      return found && { ...found, isRemoval: true }
    },
  })
}

const noText = (): string => ''

/** The body of a request: what was entered. */
export async function madeBody(
  form: SchemaForm,
  entered: FormData,
  row: ExistingRow | undefined,
): Promise<ConsoleAnswer<FormRow>> {
  const drawn = await drawnFields(form, row)
  if (drawn.kind !== 'ok') return drawn
  const textOf = (name: string): string => allEntered(entered, name)
  const body = bodyOf(form, drawn.data, asShown(form, row), textOf)
  return { ...drawn, data: body }
}

/** An object of `whole` whose texts were all emptied is absent from a new row, else null. */
function bodyOf(
  { whole = [] }: SchemaForm,
  fields: readonly FormField[],
  row: FormRow | undefined,
  textOf: (name: string) => string,
): FormRow {
  const body: Record<string, unknown> = { ...bodyFrom(fields, row, textOf) }
  for (const name of whole) {
    const texts = fields.filter((each) => each.name.startsWith(`${name}.`) && each.kind !== 'flag')
    if (!Object.hasOwn(body, name) || texts.some((each) => textOf(each.name) !== '')) continue
    if (row === undefined) delete body[name]
    else body[name] = null
  }
  return body
}

async function drawnFields(
  form: SchemaForm,
  row: ExistingRow | undefined,
): Promise<ConsoleAnswer<readonly FormField[]>> {
  const schema = await bodySchema(form.path)
  if (schema.kind !== 'ok') return schema
  const isNew = row === undefined
  const fields = fieldsOf(schema.data, isNew, namesOf(form)).filter((field) => isFor(field, isNew))
  return { ...schema, data: fields }
}

/** Choices of one name are lines. */
const allEntered = (entered: FormData, name: string): string =>
  entered
    .getAll(name)
    .filter((each) => typeof each === 'string')
    .join('\n')
    .replaceAll('\r\n', '\n')

interface SchemaFieldsProps {
  readonly form: SchemaForm
  /** Undefined: a new one. */
  readonly row: ExistingRow | undefined
  /** Content after the fields that are always in sight. */
  readonly children?: ComponentChildren
}

export function SchemaFields({ form, row: existing, children }: SchemaFieldsProps) {
  const { path, more = [], choice, when = {}, initial = {}, required = [] } = form
  const schema = useResource(`form ${path}`, () => bodySchema(path))
  /** The values that were chosen since, by field. */
  const chosen = useSignal<Readonly<Record<string, string>>>({})
  const isNew = existing === undefined
  const row = asShown(form, existing)
  const known = schema.data.value
  const fields = (known === undefined ? [] : fieldsOf(known, isNew, namesOf(form)))
    .filter((field) => isFor(field, isNew))
    .map((field) =>
      isNew && required.includes(field.name) ? { ...field, isRequired: true } : field,
    )
    .map((field) => chosenAmong(field, form))
  const filled = useContext(Filled)
  const textOf = (name: string): string => {
    const field = fields.find((each) => each.name === name)
    const first =
      filledValue(filled, name) ?? (field === undefined ? '' : firstText(field, row, initial))
    return chosen.value[name] ?? (name === choice?.name ? choice.of(row) : first)
  }
  const isThere = ({ name }: FormField): boolean => {
    const [other, ...values] = when[name] ?? []
    return other === undefined || values.includes(textOf(other))
  }
  const draw = (isMeant: (field: FormField) => boolean) => (
    <div class="fields">
      {fields
        .filter((field) => isMeant(field) && isThere(field))
        .map((field) => (
          <SchemaField key={field.name} field={field} name={field.name} row={row} form={form} />
        ))}
    </div>
  )
  return (
    // Which fields there are may depend on what is chosen.
    <div
      onChange={({ target }) => {
        if (target instanceof HTMLSelectElement)
          chosen.value = { ...chosen.value, [target.name]: target.value }
      }}
    >
      <Problem message={schema.problem.value} />
      {choice !== undefined && (
        <label>
          {choice.label}
          <select name={choice.name}>
            {Object.entries(choice.options).map(([value, text]) => (
              <option key={value} value={value} selected={value === choice.of(row)}>
                {text}
              </option>
            ))}
          </select>
        </label>
      )}
      {draw(({ name }) => !more.includes(name))}
      {children}
      {more.length > 0 && fields.length > 0 && (
        <details class="more" open={more.some((name) => filledValue(filled, name) !== undefined)}>
          <summary>More settings</summary>
          {draw(({ name }) => more.includes(name))}
        </details>
      )}
    </div>
  )
}

function chosenAmong(field: FormField, { among = {} }: SchemaForm): FormField {
  const options = among[field.name]
  return options === undefined ? field : { ...field, kind: 'choice', options }
}

const firstText = (
  field: FormField,
  row: FormRow | undefined,
  initial: Readonly<Record<string, string>> = {},
): string => (row === undefined ? initial[field.name] : undefined) ?? fieldText(field, row)

interface FieldProps {
  readonly field: FormField
  /** The name of the input in the form. */
  readonly name: string
  readonly row: FormRow | undefined
  readonly form: SchemaForm
  /** The list of whose rows it is a field, with a dot. */
  readonly list?: string
}

/** A field with its words; a list of objects has fields of its own. */
function SchemaField(props: FieldProps) {
  const { field, form, list = '' } = props
  const { labels = {}, hints = {} } = form
  const known = list + field.name
  const worded = {
    ...field,
    isRequired: field.isRequired && form.generated?.includes(known) !== true,
    label: labels[known] ?? field.label,
    description: hints[known] ?? field.description,
  }
  return field.kind === 'rows' ? (
    <RowFields {...props} field={worded} />
  ) : (
    <FieldInput {...props} field={worded} list={list} />
  )
}

/** The rows of a list, each with its fields. */
function RowFields({ field, name, row, form }: FieldProps) {
  const { one, names } = form.rows?.[field.name] ?? { one: 'row', names: undefined }
  const count = useRef(0)
  const numbered = (value: FormRow | undefined) => ({ key: (count.current += 1), value })
  const rows = useSignal<readonly ReturnType<typeof numbered>[] | undefined>(undefined)
  const counted = useFilled(name)
  rows.value ??= (
    counted !== undefined && /^\d{1,3}$/.test(counted)
      ? Array.from({ length: Number(counted) }, (_, index) => rowsOf(row, field.name)[index])
      : rowsAtFirst(field, row)
  ).map(numbered)
  const problem = useFieldProblem(name)
  const { value: present = [] } = rows
  const draw = (
    index: number,
    value: FormRow | undefined,
    isMeant: (item: FormField) => boolean,
  ) => (
    <div class="fields">
      {field.items.filter(isMeant).map((item) => (
        <SchemaField
          key={item.name}
          field={item}
          name={`${name}.${index}.${item.name}`}
          row={value}
          form={form}
          list={`${field.name}.`}
        />
      ))}
    </div>
  )
  const isUsual = (item: FormField): boolean => names?.includes(item.name) ?? true
  return (
    <fieldset class="rows">
      <legend>{field.label}</legend>
      {field.description !== undefined && <small>{field.description}</small>}
      <input type="hidden" name={name} value={present.length} />
      {present.map(({ key, value }, index) => (
        <div key={key} class="fact" role="group" aria-label={`${one} ${index + 1}`}>
          {draw(index, value, isUsual)}
          {field.items.some((item) => !isUsual(item)) && (
            <details class="more">
              <summary>More of this {one}</summary>
              {draw(index, value, (item) => !isUsual(item))}
            </details>
          )}
          {(present.length > 1 || !field.isRequired) && (
            <button
              type="button"
              onClick={() => (rows.value = present.filter((each) => each.key !== key))}
              aria-label={`Remove ${one} ${index + 1}`}
            >
              Remove
            </button>
          )}
        </div>
      ))}
      <FieldProblem name={name} text={problem} />
      <button type="button" onClick={() => (rows.value = [...present, numbered(undefined)])}>
        Add {/^[aeiou]/.test(one) ? 'an' : 'a'} {one}
      </button>
    </fieldset>
  )
}

const MONEY = String.raw`-?\d{1,9}(\.\d{1,6})?`

/** A text of several lines, and what has a long description, takes the whole width. */
function FieldInput({ field, name, row, form, list = '' }: FieldProps) {
  const { label, kind, description } = field
  const usual = firstText(
    { ...field, name: field.name },
    row,
    list === '' ? form.initial : undefined,
  )
  const isSecret = kind === 'secret' || kind === 'pem'
  const filled = useFilled(isSecret ? undefined : name)
  const text = filled === undefined ? usual : asShownText(field, filled)
  const problem = useFieldProblem(name)
  const hintId = `${useContext(FormIds)}hint-${name}`
  const described = {
    'aria-describedby': `${hintId} ${useProblemId(name)}`,
    'aria-invalid': problem !== undefined,
  } as const
  const words = form.words?.[list + field.name] ?? {}
  const made = useSignal<MadeReference | undefined>(undefined)
  const isFilled = filled !== undefined
  const input = { field, name, text, words, described, row, isFilled, made }
  if (kind === 'choices') return <Choices {...input} problem={problem} />
  return (
    <div>
      <label class={kind === 'flag' ? 'flag' : undefined}>
        {kind === 'flag' ? (
          <>
            <input type="checkbox" name={name} defaultChecked={text === 'on'} {...described} />{' '}
            {label}
          </>
        ) : (
          <>
            <span>{label}</span>
            <Input {...input} />
          </>
        )}
      </label>
      <NewButton field={field} made={made} />
      <FieldProblem name={name} text={problem} />
      <small id={hintId}>{description}</small>
    </div>
  )
}

/** A value of a link or a draft, in the form in which the field shows its own. */
function asShownText({ kind }: FormField, text: string): string {
  if (kind === 'flag') return isChecked(text) ? 'on' : ''
  return kind === 'lines' || kind === 'choices' ? text.replaceAll(/\s*,\s*/g, '\n') : text
}

/** A box for each value. */
function Choices({
  field: { label, options, description },
  name,
  text,
  words,
  described,
  problem,
}: InputProps & { readonly problem: string | undefined }) {
  const values = text.split('\n')
  return (
    <fieldset class="choices" aria-describedby={described['aria-describedby']}>
      <legend>{label}</legend>
      {options.map((each) => (
        <label key={each} class="flag">
          <input
            type="checkbox"
            name={name}
            value={each}
            defaultChecked={values.includes(each)}
            aria-invalid={described['aria-invalid']}
          />{' '}
          {words[each] ?? each}
        </label>
      ))}
      <FieldProblem name={name} text={problem} />
      <small id={described['aria-describedby'].split(' ', 1)[0]}>{description}</small>
    </fieldset>
  )
}

interface InputProps {
  readonly field: FormField
  readonly name: string
  readonly text: string
  readonly words: Readonly<Record<string, string>>
  readonly described: Readonly<{ 'aria-describedby': string; 'aria-invalid': boolean }>
  readonly row: FormRow | undefined
  /** Whether a link or a draft says the text. */
  readonly isFilled: boolean
  /** The thing that was made over the form. */
  readonly made: Signal<MadeReference | undefined>
}

function Input(props: InputProps) {
  const { field, name, text, words, described, row } = props
  const { kind, isRequired, maxLength, minimum, maximum, options } = field
  const shared = { name, autoComplete: 'off', required: isRequired, ...described } as const
  const source = sourceOf(field)
  if (source !== undefined) return <Reference {...props} source={source} />
  switch (kind) {
    case 'choice':
      return (
        <select {...shared}>
          {options.map((each) => (
            <option key={each} value={each} selected={each === text}>
              {words[each] ?? (each !== '' ? each : isRequired ? 'choose' : 'inherited')}
            </option>
          ))}
        </select>
      )
    case 'lines':
      return <textarea {...shared} defaultValue={text} rows={3} maxLength={20_000} />
    case 'pem':
      // An input of one line would take the line breaks out.
      return (
        <textarea
          {...shared}
          defaultValue={text}
          rows={6}
          maxLength={maxLength ?? 20_000}
          spellcheck={false}
          placeholder="-----BEGIN …"
        />
      )
    case 'amount':
      return <input {...shared} defaultValue={text} inputMode="decimal" pattern={MONEY} />
    case 'count':
      return <input {...shared} type="number" defaultValue={text} min={minimum} max={maximum} />
    case 'moment':
      return <input {...shared} type="datetime-local" defaultValue={text} />
    case 'secret':
      return (
        <input
          {...shared}
          type="password"
          autoComplete="new-password"
          required={isRequired && row === undefined}
          maxLength={maxLength ?? 1_000}
        />
      )
    case 'email':
      return <input {...shared} type="email" defaultValue={text} maxLength={maxLength} />
    default:
      return <input {...shared} defaultValue={text} maxLength={maxLength ?? 1_000} />
  }
}

interface Source {
  readonly path: string
  /** The field with the name. */
  readonly name: string
  /** The number that a reference means. */
  readonly id?: string
  /** How one is made over a form that lacks it. */
  readonly made?: { readonly one: string; readonly scope: string; readonly form: SchemaForm }
}

const tenantSource: Source = {
  path: '/tenants',
  name: 'slug',
  made: {
    one: 'tenant',
    scope: 'tenants',
    form: {
      path: '/tenants',
      names: ['slug', 'name', 'domains'],
      labels: { slug: 'Short name', name: 'Display name', domains: 'SIP domains' },
      hints: {
        slug: 'Lower-case letters, digits and hyphens, such as acme.',
        name: 'Empty: the short name.',
        domains: 'One a line, such as acme.example. Phones register with it.',
      },
    },
  },
}
const planSource: Source = {
  path: '/rate-plans',
  name: 'name',
  made: {
    one: 'rate plan',
    scope: 'rates',
    form: { path: '/rate-plans', names: ['name', 'currency', 'tenant'] },
  },
}
const customerSource: Source = {
  path: '/customers',
  name: 'name',
  made: {
    one: 'customer',
    scope: 'customers',
    form: {
      path: '/customers',
      names: ['name', 'rate_plan', 'numbers', 'tenant'],
      hints: { rate_plan: 'None: no call has a price.', numbers: 'One a line.' },
    },
  },
}
const carrierSource: Source = {
  path: '/routing/carriers',
  name: 'name',
  made: {
    one: 'carrier',
    scope: 'carriers',
    form: {
      path: '/routing/carriers',
      names: ['name', 'gateways', 'tenant'],
      rows: { gateways: { one: 'gateway', names: ['host', 'port', 'transport'] } },
    },
  },
}
const setSource: Source = { path: '/dispatcher', name: 'endpoint_name', id: 'set_id' }

/** The resource to which a field refers, by the name of the field. */
const sources: Readonly<Record<string, Source>> = {
  tenant: tenantSource,
  tenant_slug: tenantSource,
  customer: customerSource,
  carrier: carrierSource,
  rate_plan: planSource,
  agent: { path: '/telephony/ai-agents', name: 'name' },
  set: setSource,
  inbound_set: setSource,
}

const sourceOf = ({ name, kind }: FormField): Source | undefined =>
  kind === 'reference' || kind === 'text' ? sources[name.replace(/^.*\./, '')] : undefined

/** More are typed, not chosen. */
const MAX_CHOICES = 200

/**
 * A choice among the rows of another resource; where they are many, or not to be seen, its name is
 * typed.
 */
function Reference(props: InputProps & { readonly source: Source }) {
  const { field, name, described, row, source, made } = props
  const { path, id = 'id' } = source
  const rows = useResource(path, () => getRows<FormRow>(`${path}?limit=${MAX_CHOICES}`))
  const listId = `${useContext(FormIds)}known-${name}`
  const isMade = made.value !== undefined
  useEffect(() => {
    if (isMade) rows.reload()
  }, [made.value])
  const given = made.value?.value ?? props.text
  const shared = { name, required: field.isRequired, ...described } as const
  const { value: found } = rows.data
  if (found === undefined && rows.problem.value === undefined)
    return (
      <select {...shared} aria-busy="true">
        <option value={given}>Loading …</option>
      </select>
    )
  const choices = (found?.rows ?? []).map((each) => {
    const said = String(each[source.name])
    const tenant = path === '/tenants' ? null : each['tenant']
    return {
      value: field.kind === 'reference' ? `#${String(each[id])}` : said,
      said,
      text: typeof tenant === 'string' ? `${said} (${tenant})` : said,
    }
  })
  // A link may say a name or an id.
  const meant =
    choices.find(({ value }) => value === given) ??
    choices.find(({ said }) => said === given) ??
    choices.find(({ value }) => value === `#${given}`)
  const text = meant?.value ?? given
  const named = made.value?.said ?? (props.isFilled ? meant?.said : row?.[field.name])
  if (found === undefined || found.total > found.rows.length)
    return (
      <>
        <input
          {...shared}
          key={made.value?.value}
          autoComplete="off"
          defaultValue={typeof named === 'string' ? named : text}
          maxLength={100}
          list={listId}
        />
        <datalist id={listId}>
          {choices.map(({ said }) => (
            <option key={said} value={said} />
          ))}
        </datalist>
      </>
    )
  // Nothing else can be chosen.
  const isOnly = field.isRequired && choices.length === 1
  const isKnown = text === '' || choices.some(({ value }) => value === text)
  return (
    <select {...shared}>
      <option value="">{field.isRequired ? 'choose' : 'none'}</option>
      {!isKnown && (
        <option value={text} selected>
          {typeof named === 'string' ? named : text}
        </option>
      )}
      {choices.map(({ value, text: words }) => (
        <option key={value} value={value} selected={value === text || isOnly}>
          {words}
        </option>
      ))}
    </select>
  )
}

interface MadeReference {
  readonly value: string
  readonly said: string
}

interface NewButtonProps {
  readonly field: FormField
  readonly made: Signal<MadeReference | undefined>
}

/** Makes what the field is to refer to, in a dialog over the form, which keeps what was typed. */
function NewButton({ field, made }: NewButtonProps) {
  const above = useContext(Above)
  const source = sourceOf(field)
  if (above === undefined || source?.made === undefined) return null
  const { one, scope, form } = source.made
  if (!may(`${scope}:write`) || (source === tenantSource && !isGlobal())) return null
  const save = async (entered: FormData) => {
    const answer = await saveForm<FormRow>(form, entered, undefined)
    if (answer.kind !== 'ok') return answer
    const said = String(answer.data[source.name])
    const isById = field.kind === 'reference'
    made.value = { said, value: isById ? `#${String(answer.data[source.id ?? 'id'])}` : said }
    return answer
  }
  const ask = () =>
    void (above.value = (
      <Dialog
        title={`New ${one}`}
        action="Create"
        isOver
        onConfirm={save}
        onClose={() => (above.value = undefined)}
      >
        <SchemaFields form={form} row={undefined} />
      </Dialog>
    ))
  return (
    <button type="button" class="small" onClick={ask}>
      New {one}
    </button>
  )
}

type Operations = Readonly<
  Record<
    string,
    { requestBody?: { content: { 'application/json': { schema: { $ref: string } } } } } | undefined
  >
>

interface Document {
  readonly paths: Readonly<Record<string, Operations>>
  readonly components: { readonly schemas: Readonly<Record<string, BodySchema['create']>> }
}

let loaded: Promise<Document> | undefined

/** `path`: of a resource, such as `/customers`. */
async function bodySchema(path: string): Promise<ConsoleAnswer<BodySchema>> {
  try {
    loaded ??= load()
    const { paths, components } = await loaded
    const bodyOf = (route: string, method: string): BodySchema['create'] | undefined => {
      const reference = paths[`/api/v1${route}`]?.[method]?.requestBody?.content['application/json']
      return components.schemas[reference?.schema.$ref.split('/').at(-1) ?? '']
    }
    const data = {
      create: bodyOf(path, 'post') ?? { properties: {} },
      change: bodyOf(`${path}/{id}`, 'patch') ??
        bodyOf(`${path}/{uuid}`, 'patch') ?? { properties: {} },
    }
    return { kind: 'ok', data, meta: undefined }
  } catch {
    loaded = undefined
    return { kind: 'failed', message: 'The form cannot be loaded', code: 'unreachable' }
  }
}

async function load(): Promise<Document> {
  const response = await fetch('/openapi.json', { headers: { Accept: 'application/json' } })
  return (await response.json()) as Document
}
