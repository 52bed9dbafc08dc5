/** What changes can be about, and what their making and their undoing work with. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyStore } from '../auth/key-store.ts'
import type { Principal } from '../auth/principal.ts'
import type { RequestScope, TenantScope } from '../auth/tenants.ts'
import type { Platform } from '../http/platform.ts'

/** What JSON can say. */
export type Json =
  string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

export interface ChangeWorld extends Pick<
  Platform,
  'store' | 'engine' | 'ocs' | 'now' | 'randomBytes'
> {
  readonly kinds: Kinds
  readonly keys: KeyStore
  readonly tenants: Pick<TenantScope, 'clear'>
  readonly settings: Pick<Platform['settings'], 'reservedNetworks' | 'ownPlaces' | 'hasMediaRelay'>
}

/** A kind of thing that can be brought back to the state it had. */
export interface RestorableKind {
  /**
   * Its state is in rows: it is read, restored and entered in one transaction, so `read`, `restore` and `admit` wait for
   * statements only. Otherwise the entry is written before the change, and settled after it.
   */
  readonly isRow: boolean
  /** Null: it is not there. */
  readonly read: (id: string, world: ChangeWorld) => Promise<Json | null>
  /**
   * Throws an `ApiError` when it cannot take that state now; nothing has changed then.
   *
   * @param asker may write no more than by a request of its own; the platform may write everywhere.
   */
  readonly restore: (
    id: string,
    state: Json | null,
    world: ChangeWorld,
    asker: RequestScope,
  ) => Promise<void>
  /** What becomes of it when its creation is undone, as in "is removed: it was not there", which it is when absent. */
  readonly uncreated?: string
  /** Whether a thing with the first state has the state of a change. Absent: they are the same JSON. */
  readonly isSame?: (state: Json | null, ofChange: Json | null) => boolean
  /** Whether two changes with these states are about the same. Absent: all changes of one thing are. */
  readonly isAbout?: (one: Json | null, other: Json | null) => boolean
  /** Throws an `ApiError` unless the principal may bring it from one state to the other; the platform always may. */
  readonly admit: (
    id: string,
    change: { readonly from: Json | null; readonly to: Json | null },
    principal: Principal,
    world: ChangeWorld,
  ) => Promise<void>
  /** After the commit of a change or its undoing: what of this process follows at once. */
  readonly follow?: (world: ChangeWorld, id: string) => Promise<void>
}

export type ChangeKind =
  | 'agent'
  | 'api_key'
  | 'carrier'
  | 'customer'
  | 'dispatcher_node'
  | 'dispatcher_set'
  | 'dispatcher_sets'
  | 'extension'
  | 'inbound_route'
  | 'live_call'
  | 'outbound_route'
  | 'rate'
  | 'rate_plan'
  | 'sip_ban'
  | 'spend_guard'
  | 'tenant'

/** Null: irreversible. */
export type Kinds = Readonly<Record<ChangeKind, RestorableKind | null>>

/** Null: irreversible, or a kind of another version of the program. */
export function restorable(kinds: Kinds, kind: string): RestorableKind | null {
  const known: Readonly<Record<string, RestorableKind | null>> = kinds
  return known[kind] ?? null
}

/** Whether a thing has the state of a change of it. */
export const isSameState = (
  kind: Pick<RestorableKind, 'isSame'> | null,
  ...[state, ofChange]: Parameters<NonNullable<RestorableKind['isSame']>>
): boolean => (kind?.isSame ?? isDeepStrictEqual)(state, ofChange)
