import { hashPassword, newPassword } from '../../control/auth/passwords.ts'
import { removeSecondFactor } from '../../control/auth/second-factors.ts'
import { SeenSessions } from '../../control/auth/seen-sessions.ts'
import { staffRole, username, type UserRow, UserStore } from '../../control/auth/user-store.ts'
import type { Store } from '../../schema/storage/store.ts'
import { transaction } from '../../schema/sql/query.ts'
import { addUser } from '../first-admin.ts'
import { type Command, type CommandInput, type CommandContext, WrongUsage } from './command.ts'
import { withAudit } from './audited.ts'

export const userCreate: Command = {
  name: 'user create',
  summary: 'Creates a user of the API and the console. Standard input holds the password.',
  options: {
    username: { value: 'NAME', meaning: '1 to 64 letters, digits or . _ @ + -', isRequired: true },
    role: { value: 'admin|operator|auditor', meaning: 'what the user may do', isRequired: true },
  },
  run: async (input, context) => {
    const name = readOption(input, 'username', username)
    const role = readOption(input, 'role', staffRole)
    const user = { username: name, password: await readPassword(context), role }
    await withAudit(
      context,
      { action: 'user create', target: `${name} (${role})` },
      async (store) => {
        const isNew = await addUser(store, user, context.now())
        if (!isNew) throw new Error(`there is a user ${name} already`)
      },
    )
    context.print(`created user ${name} with the role ${role}`)
    return 0
  },
}

const whichUser = {
  username: { value: 'NAME', meaning: 'the name for the sign-in', isRequired: true },
  tenant: { value: 'SLUG', meaning: 'the tenant of the user; default: none' },
} as const

export const userPassword: Command = {
  name: 'user password',
  summary:
    'Changes the password of a user and ends its sessions. Standard input holds the password.',
  options: whichUser,
  run: async (input, context) => {
    const user = namedUser(input)
    const password = await readPassword(context)
    await withAudit(context, { action: 'user password', target: user.shown }, async (store) => {
      const { id } = await storedUser(store, user)
      const passwordHash = await hashPassword(password)
      const change = { password_hash: passwordHash, updated_at: context.now() }
      await new UserStore(store).update(id, change)
    })
    context.print(`user ${user.shown} has a new password`)
    return 0
  },
}

export const userResetSecondFactor: Command = {
  name: 'user reset-second-factor',
  summary:
    'Removes the second factor of a user who has lost it, and ends the sessions of the user.',
  options: whichUser,
  run: async (input, context) => {
    const user = namedUser(input)
    const audited = { action: 'user reset-second-factor', target: user.shown }
    await withAudit(context, audited, (store) =>
      transaction(store, async () => {
        const { id } = await storedUser(store, user)
        if (!(await removeSecondFactor(store, id)))
          throw new Error(`user ${user.shown} has no second factor`)
        await new SeenSessions(store).endAll(id, undefined, context.now())
      }),
    )
    context.print(`user ${user.shown} has no second factor any more; the password is as it was`)
    return 0
  },
}

interface NamedUser {
  readonly name: string
  readonly tenant: string | undefined
  readonly shown: string
}

function namedUser(input: CommandInput): NamedUser {
  const name = readOption(input, 'username', username)
  const { tenant } = input.options
  return { name, tenant, shown: tenant === undefined ? name : `${name} of ${tenant}` }
}

async function storedUser(store: Store, { name, tenant, shown }: NamedUser): Promise<UserRow> {
  const found = await new UserStore(store).byUsername(name, tenant)
  const user = found.find(({ tenant_slug: slug }) => slug === (tenant ?? null))
  if (user === undefined) throw new Error(`there is no user ${shown}`)
  return user
}

async function readPassword(context: CommandContext): Promise<string> {
  const typed = newPassword.safeParse((await context.readInput()).replace(/\r?\n$/, ''))
  if (typed.success) return typed.data
  throw new WrongUsage('the password on standard input must have 8 to 128 characters')
}

interface Form<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false }
}

function readOption<T>({ options }: CommandInput, name: string, form: Form<T>): T {
  const result = form.safeParse(options[name])
  if (result.success) return result.data
  throw new WrongUsage(`--${name} is "${options[name]}"; see tollgate user --help`)
}
