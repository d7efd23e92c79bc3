//! How a value is written down on a tape: serde's side of it.

use serde::ser::{
    Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple,
    Serializer,
};
use serde_json::Error;

use super::{Tape, Token};

impl Tape {
    fn push_text(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.tokens.push(Token::Text(start, self.text.len()));
    }

    fn open(&mut self, token: fn(usize) -> Token) -> Open<'_> {
        let at = self.tokens.len();
        self.tokens.push(token(at));
        Open {
            tape: self,
            at,
            token,
        }
    }
}

/// No object of Kubernetes has keys that are no text, nor what Rust knows beside structs.
fn unknown() -> Error {
    Error::custom("the value is no object of Kubernetes")
}

/// A list or map that is being written down.
pub(in crate::compare) struct Open<'t> {
    tape: &'t mut Tape,
    at: usize,
    token: fn(usize) -> Token,
}

impl Open<'_> {
    fn add(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        value.serialize(&mut *self.tape)
    }

    fn add_field(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.tape.push_text(key);
        self.add(value)
    }

    fn close(self) {
        let end = self.tape.tokens.len();
        self.tape.tokens[self.at] = (self.token)(end);
    }
}

/// Whole numbers that fit into the larger one.
macro_rules! small {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(self, v: $type) -> Result<(), Error> {
            self.serialize_i64(v.into())
        })*
    };
}

impl<'t> Serializer for &'t mut Tape {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'t>;
    type SerializeTuple = Open<'t>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Open<'t>;
    type SerializeStruct = Open<'t>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_bool(self, v: bool) -> Result<(), Error> {
        self.tokens.push(Token::Bool(v));
        Ok(())
    }

    small!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32);
    small!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32);

    fn serialize_i64(self, v: i64) -> Result<(), Error> {
        self.tokens.push(Token::Int(v));
        Ok(())
    }

    fn serialize_u64(self, v: u64) -> Result<(), Error> {
        self.tokens
            .push(i64::try_from(v).map_or(Token::Large(v), Token::Int));
        Ok(())
    }

    fn serialize_f32(self, v: f32) -> Result<(), Error> {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, v: f64) -> Result<(), Error> {
        // JSON has no other ones.
        self.tokens.push(if v.is_finite() {
            Token::Float(v)
        } else {
            Token::Null
        });
        Ok(())
    }

    fn serialize_char(self, v: char) -> Result<(), Error> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, v: &str) -> Result<(), Error> {
        self.push_text(v);
        Ok(())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Error> {
        self.collect_seq(v)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.tokens.push(Token::Null);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut map = self.open(Token::Map);
        map.add_field(variant, value)?;
        map.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'t>, Error> {
        Ok(self.open(Token::List))
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'t>, Error> {
        Ok(self.open(Token::List))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        Err(unknown())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(unknown())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'t>, Error> {
        Ok(self.open(Token::Map))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'t>, Error> {
        Ok(self.open(Token::Map))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(unknown())
    }
}

/// The forms of a list, which differ only in how serde calls them.
macro_rules! list {
    ($($form:ident),*) => {$(
        impl $form for Open<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.add(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

list!(SerializeSeq, SerializeTuple);

impl SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.add_field(key, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let at = self.tape.tokens.len();
        self.add(key)?;
        match self.tape.tokens.get(at..) {
            Some([Token::Text(..)]) => Ok(()),
            _ => Err(unknown()),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}
