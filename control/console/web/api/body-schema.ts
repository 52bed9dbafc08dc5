/** What the body of a request may have, as `/openapi.json` says. The document is loaded when the first form opens. */
import type { Answer } from './api.ts'
import type { BodySchema } from './views.ts'

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
export async function bodySchema(path: string): Promise<Answer<BodySchema>> {
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
