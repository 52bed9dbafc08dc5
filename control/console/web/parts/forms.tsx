/** Forms of resources, loaded when the first one is opened. */
import { later } from './later.tsx'

export type { SchemaForm } from './schema-form.tsx'

export const SchemaFields = later(() =>
  import('./schema-form.tsx').then((loaded) => loaded.SchemaFields),
)

export const saveForm = async <T = unknown,>(
  ...form: Parameters<typeof import('./schema-form.tsx').saveForm>
) => (await import('./schema-form.tsx')).saveForm<T>(...form)
