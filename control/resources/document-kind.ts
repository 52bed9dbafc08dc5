/** Resources as kinds of changes: their state is the body that would write them, without secrets. */
import {
  type ChangeDeps,
  fieldsOf,
  type FieldState,
  hasFields,
  type Json,
  type RestorableKind,
  shareFields,
} from '../changes/kinds.ts'
import type { z } from 'zod'
import { notFound } from '../http/api-error.ts'
import { everywhere, type RequestScope } from '../auth/tenants.ts'
import { type Definition, resourceDeps, ResourceStore } from './resource.ts'

type AnyResource = ResourceStore<z.ZodObject, z.ZodObject>

/** @param admitUse throws an `ApiError` where the resource cannot be written at all. */
export function documentKind<Body extends z.ZodObject, View extends z.ZodObject>(
  definition: Definition<Body, View>,
  admitUse: (world: ChangeDeps) => void = () => undefined,
): RestorableKind {
  const { noun, columns = {} } = definition
  const isAmount = (field: string): boolean => columns[field]?.isAmount === true
  const stateName = (field: string) => (isAmount(field) ? `${field}_micros` : field)
  const bodyName = (name: string) => {
    const field = name.replace(/_micros$/, '')
    return field !== name && isAmount(field) ? field : name
  }
  const storeOf = (world: ChangeDeps): AnyResource => {
    admitUse(world)
    return new ResourceStore<z.ZodObject, z.ZodObject>(definition, resourceDeps(world))
  }
  return {
    isRow: true,
    async read(id, world) {
      const document = await storeOf(world).document(everywhere, Number(id))
      return document === undefined ? null : renamed(asJson(document), stateName)
    },
    async restore(id, state, world, asker) {
      const resource = storeOf(world)
      if (state === null) return remove(resource, Number(id), asker)
      const fields = fieldsOf(state)
      const document = await resource.document(asker, Number(id))
      if (document === undefined || fields === null) throw notFound(noun)
      await resource.replace(Number(id), { ...document, ...renamed(fields, bodyName) }, asker)
    },
    isSame: hasFields,
    isAbout: shareFields,
    async admit(id, { to }, { tenantId, domain, actor }, world) {
      const scope = { tenantId, domain, actor, now: world.now() }
      if ((await storeOf(world).find(scope, Number(id))) === undefined) throw notFound(noun)
      if (to === null) await definition.refuseUndoing?.(Number(id), resourceDeps(world))
    },
    follow: (world, id) => definition.follow(world, { id: Number(id) }),
  }
}

/** As DELETE does: it refuses what something depends on. */
async function remove(resource: AnyResource, id: number, asker: RequestScope): Promise<void> {
  if ((await resource.remove(id, asker)) === 'absent') throw notFound(resource.noun)
}

/** A document is a body of JSON; fields that it leaves open are not there. */
const asJson = (document: object): FieldState =>
  fieldsOf(JSON.parse(JSON.stringify(document)) as Json) ?? {}

const renamed = (fields: FieldState, name: (field: string) => string): FieldState =>
  Object.fromEntries(Object.entries(fields).map(([field, value]) => [name(field), value]))
