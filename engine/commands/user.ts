import { hashPassword, newPassword } from '../../control/auth/passwords.ts'
import { staffRole, username, UserStore } from '../../control/auth/user-store.ts'
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

export const userPassword: Command = {
  name: 'user password',
  summary:
    'Changes the password of a user and ends its sessions. Standard input holds the password.',
  options: {
    username: { value: 'NAME', meaning: 'the name for the sign-in', isRequired: true },
    tenant: { value: 'SLUG', meaning: 'the tenant of the user; default: none' },
  },
  run: async (input, context) => {
    const name = readOption(input, 'username', username)
    const { tenant } = input.options
    const password = await readPassword(context)
    const target = tenant === undefined ? name : `${name} of ${tenant}`
    await withAudit(context, { action: 'user password', target }, async (store) => {
      const users = new UserStore(store)
      const found = await users.byUsername(name, tenant)
      const user = found.find(({ tenant_slug: slug }) => slug === (tenant ?? null))
      if (user === undefined) throw new Error(`there is no user ${target}`)
      const passwordHash = await hashPassword(password)
      await users.update(user.id, { password_hash: passwordHash, updated_at: context.now() })
    })
    context.print(`user ${target} has a new password`)
    return 0
  },
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
