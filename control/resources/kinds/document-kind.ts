/** Resources of the API: their state is the body that would write them, without secrets. */
import {
  type ChangeDeps,
  fieldsOf,
  type FieldState,
  hasFields,
  type Json,
  type RestorableKind,
  shareFields,
} from '../../changes/kinds.ts'
import type { z } from 'zod'
import { notFound } from '../../http/api-error.ts'
import type { Resource } from '../resource.ts'
import { everywhere, type RequestScope } from '../../auth/tenants.ts'

type DocumentStore = Pick<
  Resource<z.ZodObject, unknown>,
  'noun' | 'find' | 'document' | 'replace' | 'remove'
>

export interface DocumentKindSpec {
  readonly store: (world: ChangeDeps) => DocumentStore
  /** Fields of the body that are amounts of money, which it has in millionths. */
  readonly amounts?: readonly string[]
  readonly follow: NonNullable<RestorableKind['follow']>
  /** Throws 409 when removing it would remove what was made later, too: undoing a creation loses nothing else. */
  readonly refuseRemoval?: (id: number, world: ChangeDeps) => Promise<void>
}

export function documentKind({
  store,
  amounts = [],
  follow,
  refuseRemoval,
}: DocumentKindSpec): RestorableKind {
  const stateName = (field: string) => (amounts.includes(field) ? `${field}_micros` : field)
  const bodyName = (name: string) => amounts.find((field) => stateName(field) === name) ?? name
  return {
    isRow: true,
    async read(id, world) {
      const document = await store(world).document(everywhere, Number(id))
      return document === undefined ? null : renamed(asJson(document), stateName)
    },
    async restore(id, state, world, asker) {
      const resource = store(world)
      if (state === null) return remove(resource, Number(id), asker)
      const fields = fieldsOf(state)
      const document = await resource.document(asker, Number(id))
      if (document === undefined || fields === null) throw notFound(resource.noun)
      await resource.replace(Number(id), { ...document, ...renamed(fields, bodyName) }, asker)
    },
    isSame: hasFields,
    isAbout: shareFields,
    async admit(id, { to }, { tenantId, domain, actor }, world) {
      const resource = store(world)
      const scope = { tenantId, domain, actor, now: world.now() }
      if ((await resource.find(scope, Number(id))) === undefined) throw notFound(resource.noun)
      if (to === null) await refuseRemoval?.(Number(id), world)
    },
    follow,
  }
}

/** As DELETE does: it refuses what something depends on. */
async function remove(resource: DocumentStore, id: number, asker: RequestScope): Promise<void> {
  if ((await resource.remove(id, asker)) === 'absent') throw notFound(resource.noun)
}

/** A document is a body of JSON; fields that it leaves open are not there. */
const asJson = (document: object): FieldState =>
  fieldsOf(JSON.parse(JSON.stringify(document)) as Json) ?? {}

const renamed = (fields: FieldState, name: (field: string) => string): FieldState =>
  Object.fromEntries(Object.entries(fields).map(([field, value]) => [name(field), value]))
