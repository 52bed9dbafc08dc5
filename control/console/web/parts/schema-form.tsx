/** Forms drawn from the schema of the API: the writable fields with their bounds and descriptions. */
import { type Answer, send } from '../api/api.ts'
import { isGlobal } from '../api/session.ts'
import { enteredIn } from './form.tsx'
import { useResource } from './resource.ts'
import { bodyFrom, fieldsOf, fieldText, type FormField, type Row } from './schema-fields.ts'
import { Problem } from './text.tsx'
import type { BodySchema } from '../api/views.ts'

export interface SchemaForm {
  /** Of the resource, such as `/customers`. */
  readonly path: string
  /** Absent: all fields that a form can show. */
  readonly names?: readonly string[]
  /** Where the name of the field is not what people say. */
  readonly labels?: Readonly<Record<string, string>>
  /** In place of the description of the API. */
  readonly hints?: Readonly<Record<string, string>>
  /** Words of choices that are not themselves. */
  readonly words?: Readonly<Record<string, string>>
}

type ExistingRow = Readonly<{ id: number }>

/** Only the platform says of which tenant a new one is. */
const isFor = ({ name }: FormField, isNew: boolean): boolean =>
  name !== 'tenant' || (isNew && isGlobal())

/** Creates or changes what the form was drawn for. `more`: fields that the form does not show. */
export async function saveForm(
  { path, names }: SchemaForm,
  form: FormData,
  row: ExistingRow | undefined,
  more: Row = {},
): Promise<Answer<unknown>> {
  const schema = await bodySchema(path)
  if (schema.kind !== 'ok') return schema
  const isNew = row === undefined
  const fields = fieldsOf(schema.data, isNew, names).filter((field) => isFor(field, isNew))
  const textOf = (name: string) => enteredIn(form, name).replaceAll('\r\n', '\n')
  const body = bodyFrom(fields, row && { ...row }, textOf)
  return isNew
    ? send('POST', path, { ...body, ...more })
    : send('PATCH', `${path}/${row.id}`, { ...body, ...more })
}

interface SchemaFieldsProps {
  readonly form: SchemaForm
  /** Undefined: a new one. */
  readonly row: ExistingRow | undefined
  /** Values that exist, by field. */
  readonly suggestions?: Readonly<Record<string, readonly string[]>>
}

export function SchemaFields({ form, row, suggestions = {} }: SchemaFieldsProps) {
  const { path, names, labels = {}, hints = {}, words = {} } = form
  const schema = useResource(`form ${path}`, () => bodySchema(path))
  const isNew = row === undefined
  const known = schema.data.value
  const fields = known === undefined ? [] : fieldsOf(known, isNew, names)
  return (
    <div class="fields">
      <Problem message={schema.problem.value} />
      {fields
        .filter((field) => isFor(field, isNew))
        .map((field) => (
          <FieldInput
            key={field.name}
            field={{
              ...field,
              label: labels[field.name] ?? field.label,
              description: hints[field.name] ?? field.description,
            }}
            text={fieldText(field, row && { ...row })}
            words={words}
            suggestions={suggestions[field.name]}
          />
        ))}
    </div>
  )
}

const MONEY = String.raw`-?\d{1,9}(\.\d{1,6})?`

interface FieldInputProps {
  readonly field: FormField
  readonly text: string
  readonly words: Readonly<Record<string, string>>
  readonly suggestions: readonly string[] | undefined
}

function FieldInput({ field, text, words, suggestions }: FieldInputProps) {
  const { name, label, kind, description } = field
  const hint = `hint-${name}`
  const described = description !== undefined && { 'aria-describedby': hint }
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
            <Input
              field={field}
              text={text}
              words={words}
              described={described}
              list={suggestions && `known-${name}`}
            />
          </>
        )}
      </label>
      {description !== undefined && <small id={hint}>{description}</small>}
      {suggestions !== undefined && (
        <datalist id={`known-${name}`}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </div>
  )
}

interface InputProps extends Omit<FieldInputProps, 'suggestions'> {
  readonly described: false | { readonly 'aria-describedby': string }
  /** Id of the values that exist. */
  readonly list: string | undefined
}

function Input({ field, text, words, described, list }: InputProps) {
  const { name, kind, isRequired, maxLength, options } = field
  const shared = { name, autoComplete: 'off', required: isRequired, ...described } as const
  switch (kind) {
    case 'choice':
      return (
        <select {...shared}>
          {options.map((each) => (
            <option key={each} value={each} selected={each === text}>
              {words[each] ?? (each === '' ? 'inherited' : each)}
            </option>
          ))}
        </select>
      )
    case 'lines':
      return <textarea {...shared} defaultValue={text} rows={3} maxLength={20_000} />
    case 'amount':
      return <input {...shared} defaultValue={text} inputMode="decimal" pattern={MONEY} />
    case 'count':
      return <input {...shared} defaultValue={text} inputMode="numeric" pattern="\d{1,9}" />
    default:
      return (
        <input
          {...shared}
          type={kind === 'email' ? 'email' : 'text'}
          defaultValue={text}
          maxLength={maxLength ?? 1_000}
          list={list}
        />
      )
  }
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
async function bodySchema(path: string): Promise<Answer<BodySchema>> {
  try {
    loaded ??= load()
    const { paths, components } = await loaded
    const bodyOf = (route: string, method: string): BodySchema['create'] => {
      const reference = paths[`/api/v1${route}`]?.[method]?.requestBody?.content['application/json']
      const name = reference?.schema.$ref.split('/').at(-1) ?? ''
      return components.schemas[name] ?? { properties: {} }
    }
    const data = { create: bodyOf(path, 'post'), change: bodyOf(`${path}/{id}`, 'patch') }
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
