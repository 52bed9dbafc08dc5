/** Parts with which a person changes things, loaded together when the first one is changed. */
export { ConflictChoices } from './conflict-choices.tsx'
export { ManyDialog } from './many-dialog.tsx'
export { removeForm, saveForm, SchemaFields } from './schema-form.tsx'
