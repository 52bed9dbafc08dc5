import type { ChangeDeps } from '../changes/kinds.ts'
/** What of this process follows rows that were written, before the response to the write. */

/** What of this process follows an extension that was written: its phones, and who pays for its number. */
export async function followExtension(
  { engine, ocs }: Pick<ChangeDeps, 'engine' | 'ocs'>,
  id: number,
): Promise<void> {
  await engine.registrations.changed([id])
  await ocs?.reloadCustomers({ of: 'extension', ids: [id] })
}

/** What of this process follows a tenant that was written: its numbers and domains, and whether its customers may call. */
export async function followTenant(
  { engine, ocs }: Pick<ChangeDeps, 'engine' | 'ocs'>,
  id: number,
): Promise<void> {
  const changed = { of: 'tenant', ids: [id] } as const
  await engine.reloadRouting(changed)
  await ocs?.reloadCustomers(changed)
}
