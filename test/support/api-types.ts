/**
 * TypeScript types of the schemas that the console uses, from the project's OpenAPI document. (openapi-typescript does
 * it with the compiler's API, which TypeScript 7 does not have.)
 */
import { format, resolveConfig } from 'prettier'

type Json = Readonly<Record<string, unknown>>

const head = `/**
 * What the API answers with, as its OpenAPI document says. Generated:
 * npx vitest run test/control/console/api-types.test.ts -u
 */
`

/** `path`: of the file, whose form Prettier decides. */
export async function apiTypes(
  document: Json,
  names: readonly string[],
  path: string,
): Promise<string> {
  const schemas = (document['components'] as { schemas: Record<string, Json> }).schemas
  const wanted = new Set(names)
  const types: string[] = []
  // The set grows while it is walked, by what the schemas refer to.
  for (const name of wanted) {
    const schema = schemas[name]
    if (schema === undefined) throw new Error(`the document has no schema ${name}`)
    const type = typeOf(schema, (other) => void wanted.add(other))
    const isObject = type.startsWith('{') && 'properties' in schema
    types.push(isObject ? `export interface ${name} ${type}` : `export type ${name} = ${type}`)
  }
  return format(head + types.join('\n\n'), { ...(await resolveConfig(path)), filepath: path })
}

function typeOf(schema: Json, refer: (name: string) => void): string {
  const inner = (each: unknown): string => typeOf(each as Json, refer)
  const reference = schema['$ref']
  if (typeof reference === 'string') {
    const name = reference.slice(reference.lastIndexOf('/') + 1)
    refer(name)
    return name
  }
  if ('const' in schema) return literal(schema['const'])
  if (Array.isArray(schema['enum'])) return schema['enum'].map(literal).join(' | ')
  const options = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(options)) return options.map(inner).join(' | ')
  if (Array.isArray(schema['allOf'])) return schema['allOf'].map(inner).join(' & ')
  const { type } = schema
  if (Array.isArray(type)) return type.map((each) => inner({ ...schema, type: each })).join(' | ')
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type
    case 'integer':
    case 'number':
      return 'number'
    case 'array':
      return `readonly (${schema['items'] === undefined ? 'unknown' : inner(schema['items'])})[]`
    case 'object':
      return objectOf(schema, inner)
    default:
      return 'unknown'
  }
}

const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value}'` : String(value)

function objectOf(schema: Json, inner: (each: unknown) => string): string {
  const properties = Object.entries((schema['properties'] ?? {}) as Json)
  const others = schema['additionalProperties']
  if (properties.length === 0)
    return `Readonly<Record<string, ${typeof others === 'object' ? inner(others) : 'unknown'}>>`
  const required = new Set(schema['required'] as readonly string[] | undefined)
  const lines = properties.map(
    ([name, value]) => `readonly ${name}${required.has(name) ? '' : '?'}: ${inner(value)}`,
  )
  return `{\n${lines.join('\n')}\n}`
}
