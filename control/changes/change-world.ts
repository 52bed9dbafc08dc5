/** What kinds of changes, their making and their undoing work with. */
import type { KeyStore } from '../auth/keys/key-store.ts'
import type { TenantScope } from '../auth/tenants.ts'
import type { ControlDeps } from '../deps.ts'

/** What JSON can say. */
export type Json =
  string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

export interface ChangeWorld extends Pick<
  ControlDeps,
  'store' | 'engine' | 'ocs' | 'now' | 'randomBytes'
> {
  readonly keys: KeyStore
  readonly tenants: Pick<TenantScope, 'clear'>
  readonly settings: Pick<
    ControlDeps['settings'],
    'reservedNetworks' | 'ownPlaces' | 'hasMediaRelay'
  >
}
