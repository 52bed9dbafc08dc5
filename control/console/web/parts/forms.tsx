/** Forms of resources, loaded when the first one is opened. */
import type { ConsoleAnswer } from '../api/api.ts'
import { later, notLoaded } from './later.tsx'
import type { removeForm as remove, saveForm as save } from './schema-form.tsx'

export type { SchemaForm } from './schema-form.tsx'

const loadEditing = () => import('./editing.ts')

export const SchemaFields = later(async () => (await loadEditing()).SchemaFields)

/** A question may be confirmed before a form was drawn: nothing else says that it is missing. */
async function editing<T>(
  work: (loaded: Awaited<ReturnType<typeof loadEditing>>) => Promise<ConsoleAnswer<T>>,
): Promise<ConsoleAnswer<T>> {
  const loaded = await loadEditing().catch(() => undefined)
  if (loaded === undefined) return { kind: 'failed', message: notLoaded, code: 'unreachable' }
  return work(loaded)
}

export const saveForm = <T = unknown,>(...form: Parameters<typeof save>) =>
  editing<T>((loaded) => loaded.saveForm<T>(...form))

export const removeForm = (...row: Parameters<typeof remove>) =>
  editing((loaded) => loaded.removeForm(...row))
