/** Gives files of the operator the `drachtio-srf` of this process: none is installed beside. */
import nodeModule from 'node:module'
import type { SrfLibrary } from './library.ts'

const name = 'drachtio-srf'
const url = 'tollgate:drachtio-srf'
/** Where the module finds it: a module that is made of text has no other way to a value. */
const place = Symbol.for(url)

/**
 * `import` and `require` of drachtio-srf give `library` from now on. Node 22.14 lacks the
 * function: there a file gets it as the argument of its default export alone.
 */
export function resolveLibrary(library: SrfLibrary): void {
  Object.defineProperty(globalThis, place, { value: library, configurable: true })
  nodeModule.registerHooks?.({
    resolve: (specifier, context, next) =>
      specifier === name
        ? { url, format: 'commonjs', shortCircuit: true }
        : next(specifier, context),
    load: (wanted, context, next) =>
      wanted === url
        ? {
            format: 'commonjs',
            source: `module.exports = globalThis[Symbol.for(${JSON.stringify(url)})]`,
            shortCircuit: true,
          }
        : next(wanted, context),
  })
}
