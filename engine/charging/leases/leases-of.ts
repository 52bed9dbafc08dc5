/** Leases, where other processes spend from the same wallets. */
import type { Customers } from '../customers/customers.ts'
import { Leases, type LeasesDeps } from './leases.ts'
import type { Membership } from './membership.ts'

/** Undefined: no other process spends from the same wallets. */
export const leasesOf = (
  {
    members,
    ...deps
  }: Omit<LeasesDeps, 'members' | 'customers'> & {
    readonly members?: Membership | undefined
  },
  customers: Customers,
): Leases | undefined => members && new Leases({ ...deps, members, customers })
