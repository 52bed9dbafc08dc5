/** Forms of resources, loaded when the first one is opened. */
import { later } from './later.tsx'
import type { removeForm as remove, saveForm as save } from './schema-form.tsx'

export type { SchemaForm } from './schema-form.tsx'

export const SchemaFields = later(() =>
  import('./editing.ts').then((loaded) => loaded.SchemaFields),
)

export const saveForm = async <T = unknown,>(...form: Parameters<typeof save>) =>
  (await import('./editing.ts')).saveForm<T>(...form)

export const removeForm = async (...row: Parameters<typeof remove>) =>
  (await import('./editing.ts')).removeForm(...row)
