/**
 * The text of `control/client/operations.ts`, from the OpenAPI document: a type for each
 * schema, and the table of operations.
 */

interface Schema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly description?: string
  readonly $ref?: string
}

interface Parameter {
  readonly name?: string
  readonly in?: string
  readonly required?: boolean
  readonly schema?: Schema
  readonly $ref?: string
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content: Content }>>
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const json = 'application/json'

const head = `/**
 * The operations of the API and their types, from its OpenAPI document. Nobody writes here:
 * build.mjs beside this file does.
 */`

export function clientOperations({ paths, components }: ApiDocument): string {
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith('/api/v1/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => new Described(path, method, operation)),
    )
    .filter(({ answer }) => answer !== undefined)
  const used = new Set<string>()
  const collect = (text: string): void => {
    for (const [name] of text.matchAll(/\b[A-Z]\w+\b/g)) {
      const schema = components.schemas[name]
      if (schema === undefined || used.has(name)) continue
      used.add(name)
      collect(typeOf(schema))
    }
  }
  for (const operation of operations) collect(operation.type)
  const types = [...used]
    .toSorted()
    .map((name) => `export type ${name} = ${typeOf(components.schemas[name] ?? {})}`)
  return [
    head,
    ...types,
    `export interface Operations {\n${operations.map(({ type }) => type).join('\n')}\n}`,
    `export const operations = {\n${operations.map(({ row }) => row).join('\n')}\n} as const`,
    '',
  ].join('\n\n')
}

/** One operation as the client needs it. */
class Described {
  readonly #path: string
  readonly #method: string
  readonly #operation: Operation

  constructor(path: string, method: string, operation: Operation) {
    this.#path = path
    this.#method = method
    this.#operation = operation
  }

  /** The answer of success, as JSON or text. Undefined: a page, a file, a stream. */
  get answer(): { readonly kind: string; readonly type: string } | undefined {
    const [, success] =
      Object.entries(this.#operation.responses).find(([status]) => status < '300') ?? []
    const schema = success?.content[json]?.schema
    if (schema === undefined)
      return success?.content['text/csv'] && { kind: 'text', type: 'string' }
    const { data, meta } = schema.properties ?? {}
    if (schema.properties?.['success'] === undefined || data === undefined)
      return { kind: 'bare', type: typeOf(schema) }
    if (meta === undefined) return { kind: 'data', type: typeOf(data) }
    return { kind: 'page', type: typeOf(data.items ?? {}) }
  }

  get #bodyType(): string | undefined {
    return Object.keys(this.#operation.requestBody?.content ?? {})[0]
  }

  get type(): string {
    const { operationId, summary, parameters, requestBody } = this.#operation
    const path = parameters
      .filter((parameter) => parameter.in === 'path')
      .map(({ name = '', schema = {} }) => `${camelCase(name)}: ${typeOf(schema)}`)
    const query = parameters.filter((parameter) => parameter.in === 'query')
    const isNeeded = query.some(({ required }) => required === true)
    const properties = Object.fromEntries(
      query.map(({ name = '', schema: { description: _, ...schema } = {} }) => [name, schema]),
    )
    const required = query.flatMap(({ name, required = false }) =>
      required && name !== undefined ? [name] : [],
    )
    const body = requestBody?.content[this.#bodyType ?? '']?.schema
    const input = [
      ...(path.length > 0 ? [`path: readonly [${path.join(', ')}]`] : []),
      ...(query.length > 0
        ? [`query${isNeeded ? '' : '?'}: ${typeOf({ properties, required })}`]
        : []),
      ...(body === undefined ? [] : [`body: ${typeOf(body)}`]),
    ]
    return `${comment(summary)}${operationId}: {
      input: { ${input.join('; ')} }
      ${this.answer?.kind === 'page' ? 'item' : 'result'}: ${this.answer?.type}
    }`
  }

  /** The line of the table that the program reads. */
  get row(): string {
    const isRepeatable = this.#operation.parameters.some(({ $ref }) =>
      $ref?.endsWith('/IdempotencyKey'),
    )
    const parts = [
      `method: '${this.#method.toUpperCase()}'`,
      `path: '${this.#path}'`,
      `answer: '${this.answer?.kind}'`,
      ...(this.#bodyType === undefined || this.#bodyType === json
        ? []
        : [`bodyType: '${this.#bodyType}'`]),
      ...(isRepeatable ? ['isRepeatable: true'] : []),
    ]
    return `${this.#operation.operationId}: { ${parts.join(', ')} },`
  }
}

const typeOf = (schema: Schema): string => [...new Set(typesOf(schema))].join(' | ')

/** The members of a union; otherwise one. */
function typesOf(schema: Schema): readonly string[] {
  if (schema.$ref !== undefined) return [schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)]
  if ('const' in schema) return [JSON.stringify(schema.const)]
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value))
  const either = schema.anyOf ?? schema.oneOf
  if (either !== undefined) return either.flatMap(typesOf)
  if (Array.isArray(schema.type))
    return schema.type.flatMap((type: string) => typesOf({ ...schema, type }))
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return [schema.type]
    case 'integer':
    case 'number':
      return ['number']
    case 'array':
      return [`readonly (${typeOf(schema.items ?? {})})[]`]
    default:
      return [
        schema.properties === undefined && schema.type === undefined
          ? 'unknown'
          : objectType(schema),
      ]
  }
}

function objectType({ properties = {}, required = [], additionalProperties }: Schema): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const isNeeded = required.includes(name)
    const type = isNeeded ? typeOf(schema) : `${typeOf(schema)} | undefined`
    return `${comment(schema.description)}${JSON.stringify(name)}${isNeeded ? '' : '?'}: ${type}`
  })
  const isOpen = typeof additionalProperties === 'object' || additionalProperties === true
  const rest = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'
  const open = `Readonly<Record<string, ${rest}>>`
  if (fields.length === 0) return isOpen || additionalProperties === undefined ? open : '{}'
  return `{ ${fields.join(';\n')} }${isOpen ? ` & ${open}` : ''}`
}

const comment = (text: string | undefined): string => (text === undefined ? '' : `/** ${text} */\n`)

const camelCase = (name: string): string =>
  name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
