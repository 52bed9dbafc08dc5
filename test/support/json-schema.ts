/**
 * The part of JSON Schema 2020-12 that the OpenAPI document uses; an unknown keyword is an error.
 */

type Json = Readonly<Record<string, unknown>>

const annotations = new Set([
  'description',
  'title',
  'example',
  'examples',
  'default',
  'deprecated',
  'id',
  '$id',
  'contentEncoding',
  'contentMediaType',
  'discriminator',
  'readOnly',
  'writeOnly',
])

const formats: Readonly<Record<string, RegExp>> = {
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/,
  uuid: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i,
  email: /^[^@\s]+@[^@\s]+$/,
}

/** One line for every way in which `value` is not what `schema` says. `root` resolves `$ref`s. */
export function problemsOf(value: unknown, schema: Json, root: unknown, path = ''): string[] {
  return Object.entries(schema).flatMap(([keyword, argument]) => {
    if (annotations.has(keyword)) return []
    const check = checks[keyword]
    if (check === undefined) return [`${path}: the schema has the unknown keyword ${keyword}`]
    return check(argument, { value, schema, root, path })
  })
}

interface Place {
  readonly value: unknown
  readonly schema: Json
  readonly root: unknown
  readonly path: string
}

type Check = (argument: unknown, place: Place) => string[]

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

const isOfType = (value: unknown, type: unknown): boolean =>
  type === 'integer' ? Number.isInteger(value) : typeOf(value) === type

const when =
  (type: string, holds: (value: never, argument: never) => boolean): Check =>
  (argument, { value, path, schema }) => {
    if (typeOf(value) !== type || holds(value as never, argument as never)) return []
    return [`${path}: ${JSON.stringify(value)} against ${JSON.stringify(schema)}`]
  }

const properties: Check = (argument, { value, root, path }) =>
  isObject(value)
    ? Object.entries(argument as Record<string, Json>).flatMap(([name, schema]) =>
        name in value ? problemsOf(value[name], schema, root, `${path}.${name}`) : [],
      )
    : []

const checks: Readonly<Record<string, Check>> = {
  $ref: (argument, { value, root, path }) =>
    problemsOf(value, lookUp(root, String(argument)), root, path),
  type: (argument, { value, path }) =>
    [argument].flat().some((type) => isOfType(value, type))
      ? []
      : [`${path}: ${JSON.stringify(value)} is not ${String(argument)}`],
  const: (argument, { value, path }) =>
    value === argument ? [] : [`${path}: ${JSON.stringify(value)} is not ${String(argument)}`],
  enum: (argument, { value, path }) =>
    (argument as unknown[]).includes(value)
      ? []
      : [`${path}: ${JSON.stringify(value)} is none of ${JSON.stringify(argument)}`],
  properties,
  required: (argument, { value, path }) =>
    (argument as string[])
      .filter((name) => isObject(value) && !(name in value))
      .map((name) => `${path}.${name}: is missing`),
  additionalProperties: (argument, { value, schema, root, path }) => {
    if (!isObject(value)) return []
    const known = isObject(schema['properties']) ? schema['properties'] : {}
    const others = Object.entries(value).filter(([name]) => !(name in known))
    return others.flatMap(([name, other]) =>
      argument === false
        ? [`${path}.${name}: is not described`]
        : problemsOf(other, argument as Json, root, `${path}.${name}`),
    )
  },
  propertyNames: (argument, { value, root, path }) =>
    isObject(value)
      ? Object.keys(value).flatMap((name) => problemsOf(name, argument as Json, root, path))
      : [],
  items: (argument, { value, root, path }) =>
    Array.isArray(value)
      ? value.flatMap((item, index) =>
          problemsOf(item, argument as Json, root, `${path}[${index}]`),
        )
      : [],
  anyOf: anyOf,
  oneOf: anyOf,
  allOf: (argument, { value, root, path }) =>
    (argument as Json[]).flatMap((schema) => problemsOf(value, schema, root, path)),
  minimum: when('number', (value: number, limit: number) => value >= limit),
  maximum: when('number', (value: number, limit: number) => value <= limit),
  exclusiveMinimum: when('number', (value: number, limit: number) => value > limit),
  minLength: when('string', (value: string, limit: number) => value.length >= limit),
  maxLength: when('string', (value: string, limit: number) => value.length <= limit),
  minItems: when('array', (value: unknown[], limit: number) => value.length >= limit),
  maxItems: when('array', (value: unknown[], limit: number) => value.length <= limit),
  pattern: when('string', (value: string, pattern: string) => new RegExp(pattern, 'u').test(value)),
  format: when('string', (value: string, format: string) => formats[format]?.test(value) ?? true),
}

function anyOf(argument: unknown, { value, root, path }: Place): string[] {
  const tried = (argument as Json[]).map((schema) => problemsOf(value, schema, root, path))
  const closest = tried.toSorted((a, b) => a.length - b.length)[0] ?? []
  return tried.some((problems) => problems.length === 0) ? [] : closest
}

/** `#/components/schemas/User` */
export function lookUp(root: unknown, reference: string): Json {
  let found = root
  for (const name of reference.split('/').slice(1))
    found = isObject(found) ? found[name] : undefined
  if (isObject(found)) return found
  throw new Error(`${reference} leads nowhere`)
}
